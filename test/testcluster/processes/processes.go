// Package processes finds the processes of a test cluster, its containers' too, and ends them
// by a watchdog, in whatever way the cluster's own process ends.
package processes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// NodesDir, in the cluster's directory, holds the NodeManagers' directories.
// What runs in a container has one of these in its command line, environment
// (NM_*, LOCAL_DIRS, LOG_DIRS, PWD) or working directory; nothing else does.
const NodesDir = "yarn"

// Container is a YARN container with live processes.
type Container struct {
	ID   string // container_...
	Node string // the NodeManager's name: nm0
	PID  int    // its topmost process
	PIDs []int  // all its processes
}

type process struct {
	pid, parent int
	daemon      bool
	container   string
	node        string
}

var containerID = regexp.MustCompile(`container_(e\d+_)?\d+_\d+_\d+_\d+`)

// scan returns the live processes of the cluster, by process id.
func scan(dir string) (map[int]*process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	all := map[int]*process{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p := look(dir, pid); p != nil {
				all[pid] = p
			}
		}
	}
	// A process may have another environment and directory than the container
	// it was started in; so children belong to where their parents belong.
	for {
		again := false
		for _, p := range all {
			if parent := all[p.parent]; p.node == "" && !p.daemon && parent != nil && parent.node != "" {
				p.node, p.container, again = parent.node, parent.container, true
			}
		}
		if !again {
			break
		}
	}
	for pid, p := range all {
		if p.node == "" && !p.daemon {
			delete(all, pid)
		}
	}
	return all, nil
}

// look reads what /proc tells about a process. It returns nil for one that has
// ended, is a zombie, or may not be looked at, so is not ours.
func look(dir string, pid int) *process {
	proc := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil || pid == os.Getpid() {
		return nil
	}
	// proc(5): pid (comm) state ppid pgrp session tty_nr; comm may have anything in it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 5 || fields[0] == "Z" || fields[0] == "X" {
		return nil
	}
	p := &process{pid: pid}
	p.parent, _ = strconv.Atoi(fields[1])
	cmdline, _ := os.ReadFile(proc + "/cmdline")
	environ, _ := os.ReadFile(proc + "/environ")
	if slices.Contains(strings.Split(string(cmdline), "\x00"), JVMMark+dir) || environment(environ, MarkEnv) == dir {
		p.daemon = true
		return p
	}
	if fields[4] != "0" {
		return p // in a terminal: somebody who looks into the directories
	}
	cwd, _ := os.Readlink(proc + "/cwd")
	nodes := filepath.Join(dir, NodesDir) + "/"
	for _, text := range []string{cwd, string(cmdline), string(environ)} {
		_, after, found := strings.Cut(text+"/", nodes)
		if !found {
			continue
		}
		p.node, _, _ = strings.Cut(after, "/")
		if p.container = environment(environ, "CONTAINER_ID"); p.container == "" {
			p.container = containerID.FindString(after)
		}
		break
	}
	return p
}

func environment(environ []byte, name string) string {
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// belonging lists the processes to end with the cluster, the daemons first.
func belonging(dir string) ([]int, error) {
	all, err := scan(dir)
	if err != nil {
		return nil, err
	}
	var daemons, rest []int
	for pid, p := range all {
		if p.daemon {
			daemons = append(daemons, pid)
		} else {
			rest = append(rest, pid)
		}
	}
	return append(daemons, rest...), nil
}

// Containers returns the YARN containers of the cluster in a directory that have live processes.
func Containers(dir string) ([]Container, error) {
	all, err := scan(dir)
	if err != nil {
		return nil, err
	}
	byID := map[string]*Container{}
	for pid, p := range all {
		if p.daemon || p.container == "" {
			continue
		}
		c := byID[p.container]
		if c == nil {
			c = &Container{ID: p.container, Node: p.node}
			byID[p.container] = c
		}
		c.PIDs = append(c.PIDs, pid)
		if parent := all[p.parent]; parent == nil || parent.container != p.container {
			c.PID = pid
		}
	}
	var list []Container
	for _, c := range byID {
		slices.Sort(c.PIDs)
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Container) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// Kill kills a process; one that has ended meanwhile is no error.
func Kill(pid int) error {
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing process %d: %w", pid, err)
	}
	return nil
}
