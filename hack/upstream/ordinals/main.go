// Program ordinals answers, for each line `{"replicas": 3, "slots": [1]}`, which ordinals the Advanced StatefulSet of
// v1.6 gives its pods.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"github.com/pingcap/advanced-statefulset/client/apis/apps/v1/helper"
	"k8s.io/apimachinery/pkg/util/sets"
)

type question struct {
	Replicas int32   `json:"replicas"`
	Slots    []int32 `json:"slots"`
}

func main() {
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		ordinals := helper.GetPodOrdinalsFromReplicasAndDeleteSlots(asked.Replicas, sets.NewInt32(asked.Slots...))
		if err := answers.Encode(ordinals.List()); err != nil {
			log.Fatal(err)
		}
	}
}
