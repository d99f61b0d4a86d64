package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// addCost adds the CPU time and the peak memory of the whole process.
func addCost(seen map[string]any) error {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	peak, err := peakMegabytes()
	if err != nil {
		return err
	}
	seen["cpu_seconds"] = float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
	seen["peak_mb"] = peak
	return nil
}

func peakMegabytes() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			return kilobytes / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
