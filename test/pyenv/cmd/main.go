// Command cmd prints the path of a Python interpreter that has TensorFlow,
// and makes its environment first if there is none.
package main

import (
	"context"
	"fmt"
	"os"

	"holdfast/test/pyenv"
)

func main() {
	python, err := pyenv.TensorFlow(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(python)
}
