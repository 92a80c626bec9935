package conf

import (
	"fmt"
	"os"
)

// LoadFile reads a single file, such as ssl-client.xml, whose properties are not
// among those of Load: they hold for the machine that the file is on.
func LoadFile(path string) (*Conf, error) {
	b, err := os.ReadFile(path)
	c := New(nil)
	if err == nil {
		err = c.add(path, b)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Hadoop configuration %s: %w", path, err)
	}
	return c, nil
}
