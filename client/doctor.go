package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/container/sandbox"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
)

// Level is how good a Finding is.
type Level string

// Levels.
const (
	Good Level = "ok"
	Note Level = "note" // works, with a limit
	Bad  Level = "bad"
)

// Finding is what Diagnose found out about one thing.
type Finding struct {
	Subject string `json:"subject"`
	Level   Level  `json:"level"`
	Text    string `json:"text"`
	code    int    // what to exit with, of a bad one
}

// Diagnose looks at what jobs need, here and on the cluster. exe is this binary.
func Diagnose(ctx context.Context, exe string) []Finding {
	list := diagnoseHere(ctx, exe)
	if os.Getenv(conf.EnvDir) == "" {
		return append(list, Finding{"cluster", Note, fmt.Sprintf("%s is not set, so only local jobs can be run (--local); set it to the directory that holds core-site.xml, hdfs-site.xml and yarn-site.xml", conf.EnvDir), 0})
	}
	c, err := Connect()
	if err != nil {
		return append(list, bad("configuration", err))
	}
	defer c.Close()
	list = append(list, Finding{"configuration", Good, fmt.Sprintf("%s: default file system %s, user %s", os.Getenv(conf.EnvDir), c.conf.DefaultFS(), c.user), 0})
	if c.conf.Secure() {
		list = append(list, diagnoseKerberos())
	}
	for _, w := range c.Warnings() {
		list = append(list, Finding{"configuration", Note, w, 0})
	}
	list = append(list, c.diagnoseYARN(ctx)...)
	return append(list, c.diagnoseHDFS(ctx))
}

// diagnoseKerberos tells who this process is.
func diagnoseKerberos() Finding {
	if file := os.Getenv(token.EnvFile); file != "" {
		return Finding{"Kerberos", Note, fmt.Sprintf("the tokens in %s, which %s names, come before tickets", file, token.EnvFile), 0}
	}
	u, err := login.User()
	if err != nil {
		return bad("Kerberos", err)
	}
	return Finding{"Kerberos", Good, u.Principal() + ", by " + u.Source(), 0}
}

func bad(subject string, err error) Finding {
	return Finding{subject, Bad, err.Error(), ExitCode(err)}
}

// diagnoseHere tells what local jobs, and agents on nodes like this one, can do.
func diagnoseHere(ctx context.Context, exe string) []Finding {
	var u unix.Utsname
	system := runtime.GOOS + "/" + runtime.GOARCH
	if err := unix.Uname(&u); err == nil {
		system = "Linux " + unix.ByteSliceToString(u.Release[:]) + ", " + runtime.GOARCH
	}
	list := []Finding{{"this machine", Good, system, 0}}
	a, err := sandbox.Probe(ctx, sandbox.Options{Exe: exe})
	if err != nil {
		return append(list, bad("sandbox", err))
	}
	for _, t := range []struct {
		subject, yes, cost string
		err                error
	}{
		{"private mounts", "tasks get mounts and a hosts file of their own", "tasks see the host's files", a.Namespace},
		{"checkpoint mount", "checkpoint directories can be mounted (FUSE)", "local jobs use a link to the directory; a node like this cannot run jobs with checkpoints on HDFS", a.Fuse},
		{"steering", "a task's address stays when it moves (seccomp)", "tasks that move get another address", a.Steer},
	} {
		if t.err == nil {
			list = append(list, Finding{t.subject, Good, t.yes, 0})
		} else {
			list = append(list, Finding{t.subject, Note, fmt.Sprintf("%v. Without it, %s", t.err, t.cost), 0})
		}
	}
	return list
}

func (c *Cluster) diagnoseYARN(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	nodes, err := c.rm.Nodes(ctx)
	if err != nil {
		return []Finding{bad("YARN", rmError(err))}
	}
	var running int
	var largest yarn.Resource
	var sick []string
	for _, n := range nodes {
		if !n.Running() {
			sick = append(sick, fmt.Sprintf("%s is %s %s", n.ID, n.State, n.Health))
			continue
		}
		running++
		if n.Capability.MemoryMB > largest.MemoryMB {
			largest = n.Capability
		}
	}
	var list []Finding
	if running == 0 {
		list = append(list, Finding{"YARN", Bad, "the ResourceManager answers, and no NodeManager runs: jobs would wait", ExitFailed})
	} else {
		list = append(list, Finding{"YARN", Good, fmt.Sprintf("%d nodes run, the largest has %s", running, largest), 0})
	}
	for _, s := range sick {
		list = append(list, Finding{"node", Note, strings.TrimSpace(s), 0})
	}
	if root, err := c.rm.Queue(ctx, "root"); err == nil {
		list = append(list, Finding{"queues", Good, strings.Join(root.Leaves(), ", "), 0})
	}
	return list
}

func (c *Cluster) diagnoseHDFS(ctx context.Context) Finding {
	home, err := c.openHome(ctx)
	if err == nil {
		err = writable(ctx, home)
		home.Close()
	}
	if err != nil {
		return bad("HDFS", err)
	}
	return Finding{"HDFS", Good, "jobs are kept in " + c.home(c.user), 0}
}

// WriteFindings writes findings for people.
func WriteFindings(w io.Writer, list []Finding) error {
	for _, f := range list {
		if _, err := fmt.Fprintf(w, "%-4s  %s: %s\n", f.Level, f.Subject, f.Text); err != nil {
			return err
		}
	}
	return nil
}

// FindingsError is an error if something is bad; the findings have told what.
func FindingsError(list []Finding) error {
	for _, f := range list {
		if f.Level == Bad {
			return &coded{f.code, errors.New(f.Subject + ": jobs cannot be run on the cluster as things are")}
		}
	}
	return nil
}
