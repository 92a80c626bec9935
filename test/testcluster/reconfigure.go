package testcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Reconfigure sets properties for clients and all daemons, over those that are
// set, restarts the daemons that they concern, and returns when they serve again:
// those of HDFS, and those of YARN too unless all the properties are HDFS's own.
// An empty value takes a property away.
func (c *Cluster) Reconfigure(ctx context.Context, change map[string]string) error {
	if err := c.Configure(change); err != nil {
		return err
	}
	yarn := false
	for key := range change {
		yarn = yarn || fileOf(key) != "hdfs-site.xml"
	}
	var restart []*Daemon
	for _, d := range c.daemons {
		if d.name == "kdc" {
			continue
		}
		if yarn || strings.HasPrefix(d.name, "nn") || strings.HasPrefix(d.name, "dn") {
			restart = append(restart, d)
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
	return c.ready(ctx, "")
}

// Configure sets properties for clients, and for each daemon from its next start
// on. An empty value takes a property away.
func (c *Cluster) Configure(change map[string]string) error {
	dirs := []string{c.ConfDir()}
	for _, d := range c.daemons {
		if d.name != "kdc" {
			dirs = append(dirs, d.confDir())
		}
	}
	for _, dir := range dirs {
		if err := properties(change).amend(dir); err != nil {
			return err
		}
	}
	return nil
}

// amend changes properties in a configuration directory that write has made:
// each has a line of its own.
func (p properties) amend(dir string) error {
	for key, value := range p {
		file := filepath.Join(dir, fileOf(key))
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("changing the cluster's configuration: %w", err)
		}
		lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, propertyStart(key))
		})
		if value != "" {
			lines = slices.Insert(lines, 1, propertyLine(key, value))
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644); err != nil {
			return fmt.Errorf("changing the cluster's configuration: %w", err)
		}
	}
	return nil
}
