PD=$(echo "$PD" | sed 's#https\{0,1\}://##g')
