package testcluster

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Reconfigure sets properties for clients and all daemons, over those that are
// set, restarts the daemons of HDFS, and returns when they serve again. An empty
// value is as one that is not set.
func (c *Cluster) Reconfigure(ctx context.Context, change map[string]string) error {
	dirs := []string{c.ConfDir()}
	var restart []*Daemon
	for _, d := range c.daemons {
		if d.name == "kdc" {
			continue
		}
		dirs = append(dirs, d.confDir())
		if strings.HasPrefix(d.name, "nn") || strings.HasPrefix(d.name, "dn") {
			restart = append(restart, d)
		}
	}
	for _, dir := range dirs {
		if err := properties(change).amend(dir); err != nil {
			return err
		}
	}
	for _, d := range restart {
		if err := d.Kill(); err != nil {
			return err
		}
	}
	for _, d := range restart {
		if err := d.start(); err != nil {
			return err
		}
	}
	return c.ready(ctx)
}

// amend adds properties to a configuration directory: of two of one name in a
// file, the later one counts.
func (p properties) amend(dir string) error {
	for key, value := range p {
		file := filepath.Join(dir, fileOf(key))
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("changing the cluster's configuration: %w", err)
		}
		b := bytes.NewBuffer(bytes.TrimSuffix(bytes.TrimSpace(text), []byte("</configuration>")))
		b.WriteString("<property><name>")
		_ = xml.EscapeText(b, []byte(key)) // a Buffer never fails
		b.WriteString("</name><value>")
		_ = xml.EscapeText(b, []byte(value))
		b.WriteString("</value></property>\n</configuration>\n")
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("changing the cluster's configuration: %w", err)
		}
	}
	return nil
}
