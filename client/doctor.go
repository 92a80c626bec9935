package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"holdfast/doctor"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/kms"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
)

// Diagnose looks at what jobs need, here and on the cluster. exe is this binary.
func Diagnose(ctx context.Context, exe string) []doctor.Finding {
	list := append([]doctor.Finding{doctor.System()}, doctor.Sandbox(ctx, exe)...)
	if os.Getenv(conf.EnvDir) == "" {
		return append(list, doctor.Finding{Subject: "cluster", Level: doctor.Note, Text: fmt.Sprintf("%s is not set, so only local jobs can be run (--local); set it to the directory that holds core-site.xml, hdfs-site.xml and yarn-site.xml", conf.EnvDir)})
	}
	c, err := Connect()
	if err != nil {
		return append(list, bad("configuration", err))
	}
	defer c.Close()
	list = append(list, doctor.Finding{Subject: "configuration", Level: doctor.Good, Text: fmt.Sprintf("%s: default file system %s, user %s", os.Getenv(conf.EnvDir), c.conf.DefaultFS(), c.user)})
	if c.conf.Secure() {
		list = append(list, diagnoseKerberos())
	}
	for _, w := range c.Warnings() {
		list = append(list, doctor.Finding{Subject: "configuration", Level: doctor.Note, Text: w})
	}
	list = append(list, diagnoseVirtualMemory(c.conf))
	list = append(list, c.diagnoseYARN(ctx)...)
	list = append(list, c.diagnoseHDFS(ctx))
	return append(list, DiagnoseKeys(ctx, c.conf)...)
}

// diagnoseKerberos tells who this process is.
func diagnoseKerberos() doctor.Finding {
	if file := os.Getenv(token.EnvFile); file != "" {
		return doctor.Finding{Subject: "Kerberos", Level: doctor.Note, Text: fmt.Sprintf("the tokens in %s, which %s names, come before tickets", file, token.EnvFile)}
	}
	u, err := login.User()
	if err != nil {
		return bad("Kerberos", err)
	}
	return doctor.Finding{Subject: "Kerberos", Level: doctor.Good, Text: u.Principal() + ", by " + u.Source()}
}

// diagnoseVirtualMemory tells whether NodeManagers kill containers for memory that
// these reserve and do not use (ContainersMonitorImpl). The properties are those of
// NodeManagers, which the configuration of clients need not have.
func diagnoseVirtualMemory(c *conf.Conf) doctor.Finding {
	const subject = "virtual memory"
	ratio := cmp.Or(c.Get("yarn.nodemanager.vmem-pmem-ratio"), "2.1")
	_, chosen := c.Lookup("yarn.nodemanager.resource.memory.enforced")
	switch {
	case !c.Bool("yarn.nodemanager.vmem-check-enabled", true):
		return doctor.Finding{Subject: subject, Level: doctor.Good, Text: "NodeManagers do not limit it"}
	case chosen && c.Bool("yarn.nodemanager.resource.memory.enforced", true):
		return doctor.Finding{Subject: subject, Level: doctor.Good, Text: "NodeManagers leave memory to cgroups (yarn.nodemanager.resource.memory.enforced)"}
	}
	text := fmt.Sprintf("NodeManagers kill containers whose virtual memory is more than %s times what they asked for, and a task's agent alone reserves some 4 GB, which it does not use: have yarn.nodemanager.vmem-check-enabled set to false on the nodes", ratio)
	if !chosen {
		text += "; those of newer versions of Hadoop do so only where yarn.nodemanager.resource.memory.enforced is false, too"
	}
	return doctor.Finding{Subject: subject, Level: doctor.Note, Text: text}
}

func bad(subject string, err error) doctor.Finding {
	return doctor.Finding{Subject: subject, Level: doctor.Bad, Text: err.Error(), Exit: ExitCode(err)}
}

func (c *Cluster) diagnoseYARN(ctx context.Context) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	nodes, err := c.rm.Nodes(ctx)
	if err != nil {
		return []doctor.Finding{bad("YARN", rmError(err))}
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
	var list []doctor.Finding
	if running == 0 {
		list = append(list, doctor.Finding{Subject: "YARN", Level: doctor.Bad, Text: "the ResourceManager answers, and no NodeManager runs: jobs would wait"})
	} else {
		list = append(list, doctor.Finding{Subject: "YARN", Level: doctor.Good, Text: fmt.Sprintf("%d nodes run, the largest has %s", running, largest)})
	}
	for _, s := range sick {
		list = append(list, doctor.Finding{Subject: "node", Level: doctor.Note, Text: strings.TrimSpace(s)})
	}
	if root, err := c.rm.Queue(ctx, "root"); err == nil {
		list = append(list, doctor.Finding{Subject: "queues", Level: doctor.Good, Text: strings.Join(root.Leaves(), ", ")})
	}
	return list
}

func (c *Cluster) diagnoseHDFS(ctx context.Context) doctor.Finding {
	home, err := c.openHome(ctx)
	if err == nil {
		err = writable(ctx, home)
		home.Close()
	}
	if err != nil {
		return bad("HDFS", err)
	}
	return doctor.Finding{Subject: "HDFS", Level: doctor.Good, Text: "jobs are kept in " + c.home(c.user)}
}

// DiagnoseKeys tells whether the keys of files in encryption zones are to be had,
// where the default file system has such zones.
func DiagnoseKeys(ctx context.Context, c *conf.Conf) []doctor.Finding {
	const subject = "encryption zones"
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	nn, err := hdfs.Dial(ctx, c.DefaultFS(), c, nil)
	if err != nil {
		return nil // diagnoseHDFS has told
	}
	defer nn.Close()
	provider, err := nn.KeyProvider(ctx)
	if err != nil || provider == "" {
		return nil
	}
	keys, err := kms.New(provider, c)
	if err == nil {
		defer keys.Close()
		err = keys.Check(ctx)
	}
	if err != nil {
		return []doctor.Finding{{Subject: subject, Level: doctor.Note, Text: fmt.Sprintf("%v. Without them, no file in an encryption zone is read or written: name checkpoint directories outside of any", err)}}
	}
	return []doctor.Finding{{Subject: subject, Level: doctor.Good, Text: "files' keys come from " + provider}}
}

// WriteFindings writes findings for people: first those of this machine and of
// the cluster as a whole, then what is well on all nodes, a table of the rest, and
// what is to be done about it.
func WriteFindings(w io.Writer, list []doctor.Finding) error {
	var nodes, subjects []string
	worst := map[[2]string]doctor.Level{}
	type trouble struct {
		level         doctor.Level
		subject, text string
	}
	var troubles []trouble
	where := map[trouble][]string{}
	for _, f := range list {
		if f.Node == "" {
			if _, err := fmt.Fprintf(w, "%-4s  %s: %s\n", f.Level, f.Subject, f.Text); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains(nodes, f.Node) {
			nodes = append(nodes, f.Node)
		}
		if !slices.Contains(subjects, f.Subject) {
			subjects = append(subjects, f.Subject)
		}
		if at := [2]string{f.Node, f.Subject}; worst[at] == "" || f.Level == doctor.Bad || worst[at] == doctor.Good {
			worst[at] = f.Level
		}
		if t := (trouble{f.Level, f.Subject, f.Text}); f.Level != doctor.Good {
			if where[t] == nil {
				troubles = append(troubles, t)
			}
			where[t] = append(where[t], f.Node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	var well, mixed []string
	for _, s := range subjects {
		if slices.ContainsFunc(nodes, func(n string) bool { return worst[[2]string{n, s}] != doctor.Good }) {
			mixed = append(mixed, s)
		} else {
			well = append(well, s)
		}
	}
	if _, err := fmt.Fprintf(w, "\n%d nodes (%s)\nok on all: %s\n", len(nodes), strings.Join(nodes, ", "), cmp.Or(strings.Join(well, ", "), "nothing")); err != nil || len(mixed) == 0 {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nnode\t%s\n", strings.Join(mixed, "\t")) // Flush tells of errors
	for _, n := range nodes {
		fmt.Fprint(table, n)
		for _, s := range mixed {
			level := string(worst[[2]string{n, s}])
			if level == "" {
				level = "-"
			}
			fmt.Fprint(table, "\t", level)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, t := range troubles {
		if _, err := fmt.Fprintf(w, "\n%s  %s, on %s: %s\n", t.level, t.subject, strings.Join(where[t], ", "), t.text); err != nil {
			return err
		}
	}
	return nil
}

// FindingsError is an error if something is bad; the findings have told what.
func FindingsError(list []doctor.Finding) error {
	for _, f := range list {
		switch {
		case f.Level != doctor.Bad:
		case f.Node != "":
			return &coded{ExitFailed, fmt.Errorf("%s: jobs cannot use the node %s as things are", f.Subject, f.Node)}
		default:
			return &coded{cmp.Or(f.Exit, ExitFailed), errors.New(f.Subject + ": jobs cannot be run on the cluster as things are")}
		}
	}
	return nil
}
