package conf

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// packed is the form in which a configuration travels: JSON, compressed.
// Values travel substituted: the environment is the client's, not the container's.
type packed struct {
	Properties map[string]string `json:"properties"`
	Final      []string          `json:"final,omitempty"`
}

// Pack returns the configuration as bytes, to be carried in a container's
// credentials.
func (c *Conf) Pack() ([]byte, error) {
	p := packed{Properties: make(map[string]string, len(c.values))}
	for _, k := range c.Keys() {
		p.Properties[k] = c.Text(k)
		if c.values[k].final {
			p.Final = append(p.Final, k)
		}
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(p); err != nil {
		return nil, fmt.Errorf("pack the Hadoop configuration: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack the Hadoop configuration: %w", err)
	}
	return b.Bytes(), nil
}

// Unpack reads what Pack wrote.
func Unpack(b []byte) (*Conf, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("unpack the Hadoop configuration: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errors.New("too large")
	}
	if err != nil {
		return nil, fmt.Errorf("unpack the Hadoop configuration: %w", err)
	}
	var p packed
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("unpack the Hadoop configuration: %w", err)
	}
	c := New(nil)
	for k, v := range p.Properties {
		c.values[k] = value{text: v, from: "the job's configuration"}
	}
	for _, k := range p.Final {
		if v, ok := c.values[k]; ok {
			v.final = true
			c.values[k] = v
		}
	}
	return c, nil
}
