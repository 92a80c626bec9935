// Command netcut keeps a cgroup's sockets from the network: every packet to and
// from them is dropped, or only those from and to some TCP ports. Nobody is told:
// no connection is reset. It prints "cut" once that holds, and gives the network
// back when its standard input ends, or itself.
//
//	netcut CGROUP [PORT...]
//
// It takes root and a cgroup hierarchy of version 2. It is a module of its own,
// so that the product does not depend on what only its tests need.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "netcut:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	if len(args) == 0 {
		return errors.New("usage: netcut CGROUP [PORT...]")
	}
	var ports []int
	for _, arg := range args[1:] {
		port, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("port %q is not a number", arg)
		}
		ports = append(ports, port)
	}
	drop, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.CGroupSKB, License: "GPL", Instructions: dropping(ports)})
	if err != nil {
		return fmt.Errorf("loading a packet filter: %w", err)
	}
	defer drop.Close()
	for _, direction := range []ebpf.AttachType{ebpf.AttachCGroupInetIngress, ebpf.AttachCGroupInetEgress} {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: args[0], Attach: direction, Program: drop})
		if err != nil {
			return fmt.Errorf("attaching a packet filter to %s: %w", args[0], err)
		}
		defer func() { err = errors.Join(err, l.Close()) }()
	}
	fmt.Println("cut")
	_, _ = io.Copy(io.Discard, os.Stdin) // its end, in whatever way, gives the network back
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
