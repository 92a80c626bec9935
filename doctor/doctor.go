// Package doctor implements `yarn-submit doctor`: it checks this machine, the services
// of the cluster and, by a short container on each, its nodes, and says what jobs can
// do there and what to do about the rest. Package check has the checks of a machine;
// package nodecheck is the application master that runs them on the nodes.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/client/submit"
	"holdfast/doctor/check"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/kms"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/nodump"
)

// Diagnose looks at what jobs need, here and on the cluster. exe is this binary. It shuts this
// process's memory (package nodump) before it logs in.
func Diagnose(ctx context.Context, exe string) []check.Finding {
	list := append([]check.Finding{check.System()}, check.Sandbox(ctx, exe)...)
	if err := nodump.Protect(); err != nil {
		return append(list, bad("system", err))
	}
	if os.Getenv(conf.EnvDir) == "" {
		return append(list, check.Finding{Subject: "cluster", Level: check.Note, Text: fmt.Sprintf("%s is not set, so only local jobs can be run (--local); set it to the directory that holds core-site.xml, hdfs-site.xml and yarn-site.xml", conf.EnvDir)})
	}
	c, err := cluster.Connect()
	if err != nil {
		return append(list, bad("configuration", err))
	}
	defer c.Close()
	list = append(list, check.Finding{Subject: "configuration", Level: check.Good, Text: fmt.Sprintf("%s: default file system %s, user %s", os.Getenv(conf.EnvDir), c.Conf.DefaultFS(), c.User)})
	if c.Conf.Secure() {
		list = append(list, diagnoseKerberos())
	}
	for _, w := range c.Warnings() {
		list = append(list, check.Finding{Subject: "configuration", Level: check.Note, Text: w})
	}
	list = append(list, diagnoseVirtualMemory(c.Conf))
	list = append(list, diagnoseYARN(ctx, c)...)
	list = append(list, diagnoseHDFS(ctx, c))
	return append(list, DiagnoseKeys(ctx, c.Conf, c.Home(c.User))...)
}

// diagnoseKerberos reports who this process is.
func diagnoseKerberos() check.Finding {
	if file := os.Getenv(token.EnvFile); file != "" {
		return check.Finding{Subject: "Kerberos", Level: check.Note, Text: fmt.Sprintf("the tokens in %s, which %s names, come before tickets", file, token.EnvFile)}
	}
	u, err := login.User()
	if err != nil {
		return bad("Kerberos", err)
	}
	return check.Finding{Subject: "Kerberos", Level: check.Good, Text: u.Principal() + ", by " + u.Source()}
}

// diagnoseVirtualMemory reports whether NodeManagers kill containers for memory that
// these reserve and do not use (ContainersMonitorImpl). The properties are those of
// NodeManagers, which the configuration of clients need not have.
func diagnoseVirtualMemory(c *conf.Conf) check.Finding {
	const subject = "virtual memory"
	ratio := cmp.Or(c.Get("yarn.nodemanager.vmem-pmem-ratio"), "2.1")
	_, chosen := c.Lookup("yarn.nodemanager.resource.memory.enforced")
	switch {
	case !c.Bool("yarn.nodemanager.vmem-check-enabled", true):
		return check.Finding{Subject: subject, Level: check.Good, Text: "NodeManagers do not limit it"}
	case chosen && c.Bool("yarn.nodemanager.resource.memory.enforced", true):
		return check.Finding{Subject: subject, Level: check.Good, Text: "NodeManagers leave memory to cgroups (yarn.nodemanager.resource.memory.enforced)"}
	}
	text := fmt.Sprintf("NodeManagers kill containers whose virtual memory is more than %s times what they asked for, and a task's agent alone reserves some 4 GB, which it does not use: have yarn.nodemanager.vmem-check-enabled set to false on the nodes", ratio)
	if !chosen {
		text += "; those of newer versions of Hadoop do so only where yarn.nodemanager.resource.memory.enforced is false, too"
	}
	return check.Finding{Subject: subject, Level: check.Note, Text: text}
}

func bad(subject string, err error) check.Finding {
	return check.Finding{Subject: subject, Level: check.Bad, Text: err.Error(), Exit: client.ExitCode(err)}
}

func diagnoseYARN(ctx context.Context, c *cluster.Cluster) []check.Finding {
	ctx, cancel := context.WithTimeout(ctx, 2*cluster.Timeout)
	defer cancel()
	nodes, err := c.RM.Nodes(ctx)
	if err != nil {
		return []check.Finding{bad("YARN", cluster.YARNError(err))}
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
	var list []check.Finding
	if running == 0 {
		list = append(list, check.Finding{Subject: "YARN", Level: check.Bad, Text: "the ResourceManager answers, and no NodeManager runs: jobs would wait"})
	} else {
		list = append(list, check.Finding{Subject: "YARN", Level: check.Good, Text: fmt.Sprintf("%d nodes run, the largest has %s", running, largest)})
	}
	for _, s := range sick {
		list = append(list, check.Finding{Subject: "node", Level: check.Note, Text: strings.TrimSpace(s)})
	}
	if partitions, err := c.RM.Partitions(ctx); err == nil {
		list = append(list, diagnoseLabels(nodes, partitions))
	}
	if types, err := c.RM.ResourceTypes(ctx); err == nil {
		list = append(list, diagnoseResources(nodes, types))
	}
	if root, err := c.RM.Queue(ctx, "root"); err == nil {
		list = append(list, check.Finding{Subject: "queues", Level: check.Good, Text: strings.Join(root.Leaves(), ", ")})
	}
	return list
}

func diagnoseHDFS(ctx context.Context, c *cluster.Cluster) check.Finding {
	home, err := c.OpenHome(ctx)
	if err == nil {
		err = submit.CheckWritable(ctx, home)
		home.Close()
	}
	if err != nil {
		return bad("HDFS", err)
	}
	return check.Finding{Subject: "HDFS", Level: check.Good, Text: "jobs are kept in " + c.Home(c.User)}
}

// DiagnoseKeys reports whether the keys of files in encryption zones are to be had,
// where a file system has such zones.
func DiagnoseKeys(ctx context.Context, c *conf.Conf, fs string) []check.Finding {
	const subject = "encryption zones"
	ctx, cancel := context.WithTimeout(ctx, 2*cluster.Timeout)
	defer cancel()
	nn, err := hdfs.New(fs, c, hdfs.Options{})
	if err != nil {
		return nil // diagnoseHDFS has reported it
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
		return []check.Finding{{Subject: subject, Level: check.Note, Text: fmt.Sprintf("%v. Without them, no file in an encryption zone is read or written: name checkpoint directories outside of any", err)}}
	}
	return []check.Finding{{Subject: subject, Level: check.Good, Text: "files' keys come from " + provider}}
}
