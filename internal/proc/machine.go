package proc

import (
	"fmt"
	"os"
	"strings"
)

// Place is where processes have numbers of their own: a machine, from one start of it to the next,
// and in it a namespace of process ids (pid_namespaces(7)).
type Place struct {
	Host      string // its name and, if it has one, its machine-id(5): names are not unique
	Boot      string // of the machine, from its start on
	Namespace string // of this process
}

// Here returns the place of this process.
func Here() (Place, error) {
	name, err := os.Hostname()
	if err != nil {
		return Place{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Place{}, err
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Place{}, err
	}
	id, _ := os.ReadFile("/etc/machine-id") // containers have none
	return Place{Host: strings.TrimSpace(name + " " + strings.TrimSpace(string(id))), Boot: strings.TrimSpace(string(boot)), Namespace: namespace}, nil
}

// Name returns the name of the machine.
func (p Place) Name() string {
	name, _, _ := strings.Cut(p.Host, " ")
	return name
}

// String returns what ParsePlace reads, in a line for each part.
func (p Place) String() string { return fmt.Sprintf("%s\n%s\n%s\n", p.Host, p.Boot, p.Namespace) }

// ParsePlace reads what String has returned.
func ParsePlace(text string) (p Place, ok bool) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 3 {
		return p, false
	}
	return Place{lines[0], lines[1], lines[2]}, true
}
