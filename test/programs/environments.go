package programs

import (
	"context"
	"fmt"
	"strings"

	"holdfast/test/pyenv"
)

// What the programs run on, besides pyenv's own.
var (
	tfKeras = pyenv.Environment{Requirements: []string{"tensorflow-cpu==2.21.0", "tf-keras==2.21.0", "numpy==2.4.6"}}
	tf215   = pyenv.Environment{Python: "3.11", Requirements: []string{"tensorflow-cpu==2.15.1"}}
	tf211   = pyenv.Environment{Python: "3.10", Requirements: []string{"tensorflow-cpu==2.11.1", "numpy==1.24.4"}}
)

// MakeEnvironments makes the Python environments that the programs of some families or names
// need, as far as they have not been made before. That takes minutes: gigabytes come from
// PyPI, and Horovod is compiled.
func MakeEnvironments(ctx context.Context, names []string) error {
	chosen, unknown := Select(names)
	if len(unknown) > 0 {
		return fmt.Errorf("there is no program or family %s", strings.Join(unknown, ", "))
	}
	for _, p := range chosen {
		if _, err := p.Python(ctx); err != nil {
			return fmt.Errorf("making the environment of %s: %w", p.Name, err)
		}
	}
	return nil
}
