package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"holdfast/internal/testcluster"
)

// Cut can take one node of a cluster off the network: its NodeManager is in a
// cgroup of its own, and so is what it starts, and a program that drops every
// packet to and from the cgroup's sockets comes and goes. Nobody is told: no
// connection is reset. Nobody else on the machine notices.
type Cut struct {
	cluster *testcluster.Cluster
	node    string
	group   string
	links   []link.Link
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
	cut := &Cut{cluster: c, node: node, group: group}
	if err := cut.restart(ctx, c.Daemon(node)); err != nil {
		return nil, errors.Join(err, cut.Close())
	}
	return cut, nil
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
	drop, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.CGroupSKB, License: "GPL", Instructions: dropping(ports)})
	if err != nil {
		return fmt.Errorf("loading a packet filter: %w", err)
	}
	defer drop.Close()
	for _, way := range []ebpf.AttachType{ebpf.AttachCGroupInetIngress, ebpf.AttachCGroupInetEgress} {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: c.group, Attach: way, Program: drop})
		if err != nil {
			return errors.Join(fmt.Errorf("cutting %s off: %w", c.node, err), c.join())
		}
		c.links = append(c.links, l)
	}
	return nil
}

// dropping is a program that drops packets from and to ports, or all.
func dropping(ports []int) asm.Instructions {
	var program asm.Instructions
	if len(ports) > 0 {
		const (
			header = 20 // bytes of IPv4's without options; then come the source's and the destination's port
			copied = -8 // on the stack
		)
		program = append(program,
			asm.Mov.Imm(asm.R2, header), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, copied), asm.Mov.Imm(asm.R4, 4),
			asm.FnSkbLoadBytes.Call(), asm.JNE.Imm(asm.R0, 0, "pass"))
		for _, at := range []int16{copied, copied + 2} {
			program = append(program, asm.LoadMem(asm.R1, asm.RFP, at, asm.Half), asm.HostTo(asm.BE, asm.R1, asm.Half))
			for _, p := range ports {
				program = append(program, asm.JEq.Imm(asm.R1, int32(p), "drop"))
			}
		}
		program = append(program, asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"), asm.Return())
	}
	return append(program, asm.Mov.Imm(asm.R0, 0).WithSymbol("drop"), asm.Return())
}

// join puts the node back on the network.
func (c *Cut) join() error {
	var errs []error
	for _, l := range c.links {
		errs = append(errs, l.Close())
	}
	c.links = nil
	return errors.Join(errs...)
}

// Close gives the cgroup back, once the cluster has ended.
func (c *Cut) Close() error {
	return errors.Join(c.join(), os.Remove(c.group))
}
