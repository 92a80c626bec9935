package faults

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"holdfast/test/testcluster"
)

// Cut can take one node of a cluster off the network: its NodeManager is in a
// cgroup of its own, and so is what it starts, and a process (netcut) that drops every
// packet to and from the cgroup's sockets comes and goes. Nobody is told: no
// connection is reset. Nobody else on the machine notices.
type Cut struct {
	cluster *testcluster.Cluster
	node    string
	group   string
	program string       // netcut, built
	cutter  func() error // ends the process that keeps the node off the network; nil while it is on it
}

// NewCut restarts a NodeManager in a cgroup of its own. It takes root and a
// cgroup hierarchy of version 2.
func NewCut(ctx context.Context, c *testcluster.Cluster, node string) (*Cut, error) {
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "unified")); err == nil { // beside version 1
		root = filepath.Join(root, "unified")
	}
	group, err := os.MkdirTemp(root, "holdfast-cut-")
	if err != nil {
		return nil, fmt.Errorf("making a cgroup for the node that is to be cut off: %w", err)
	}
	cut := &Cut{cluster: c, node: node, group: group, program: filepath.Join(c.Dir(), "netcut")}
	if err := buildNetcut(ctx, cut.program); err != nil {
		return nil, errors.Join(err, cut.Close())
	}
	if err := cut.restart(ctx, c.Daemon(node)); err != nil {
		return nil, errors.Join(err, cut.Close())
	}
	return cut, nil
}

// buildNetcut builds the program that drops packets, a module of its own.
func buildNetcut(ctx context.Context, out string) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "holdfast/test/faults").Output()
	if err != nil {
		return fmt.Errorf("finding the source of netcut: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(strings.TrimSpace(string(dir)), "netcut"), "-o", out, ".")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building netcut: %w\n%s", err, text)
	}
	return nil
}

// restart restarts the NodeManager and has it in the cgroup before it opens its
// first socket: its JVM takes longer to start than that.
func (c *Cut) restart(ctx context.Context, d *testcluster.Daemon) error {
	if err := d.Kill(); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- d.Restart(ctx) }()
	for {
		if pid := c.process(); pid != 0 {
			if err := os.WriteFile(filepath.Join(c.group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
				return errors.Join(fmt.Errorf("moving %s into its cgroup: %w", c.node, err), <-served)
			}
			return <-served
		}
		select {
		case err := <-served:
			return errors.Join(fmt.Errorf("the process of %s was not found", c.node), err)
		case <-time.After(time.Millisecond):
		}
	}
}

// process is the NodeManager's, found by its configuration directory.
func (c *Cut) process() int {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte(":"+filepath.Join(c.cluster.Dir(), c.node, "conf")+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return pid
		}
	}
	return 0
}

// sever takes the node off the network, or keeps it from these ports of others.
func (c *Cut) sever(ports ...int) error {
	args := []string{c.group}
	for _, port := range ports {
		args = append(args, strconv.Itoa(port))
	}
	cmd := exec.Command(c.program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("cutting %s off: %w", c.node, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cutting %s off: %w", c.node, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cutting %s off: %w", c.node, err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "cut\n" {
		stdin.Close()
		return fmt.Errorf("cutting %s off: netcut said %q: %w: %s", c.node, line, cmd.Wait(), bytes.TrimSpace(stderr.Bytes()))
	}
	c.cutter = func() error {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("putting %s back on the network: %w: %s", c.node, err, bytes.TrimSpace(stderr.Bytes()))
		}
		return nil
	}
	return nil
}

// join puts the node back on the network.
func (c *Cut) join() error {
	if c.cutter == nil {
		return nil
	}
	err := c.cutter()
	c.cutter = nil
	return err
}

// Close gives the cgroup back, once the cluster has ended.
func (c *Cut) Close() error {
	return errors.Join(c.join(), os.Remove(c.group))
}
