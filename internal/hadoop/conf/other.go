package conf

import "fmt"

// LoadFile reads a single file, such as ssl-client.xml, whose properties are not
// among those of Load: they hold for the machine that the file is on.
func LoadFile(path string) (*Conf, error) {
	c := New(nil)
	if err := c.add(path); err != nil {
		return nil, fmt.Errorf("read the Hadoop configuration %s: %w", path, err)
	}
	return c, nil
}
