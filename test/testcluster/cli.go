package testcluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// commands are Hadoop's command-line tools by the names that its scripts have
// for them, each with the arguments that those scripts put first.
var commands = map[string][]string{
	"fs":                 {"org.apache.hadoop.fs.FsShell"},
	"dfsadmin":           {"org.apache.hadoop.hdfs.tools.DFSAdmin"},
	"haadmin":            {"org.apache.hadoop.hdfs.tools.DFSHAAdmin"},
	"crypto":             {"org.apache.hadoop.hdfs.tools.CryptoAdmin"},
	"key":                {"org.apache.hadoop.crypto.key.KeyShell"},
	"fsck":               {"org.apache.hadoop.hdfs.tools.DFSck"},
	"fetchdt":            {"org.apache.hadoop.hdfs.tools.DelegationTokenFetcher"},
	"dtutil":             {"org.apache.hadoop.security.token.DtUtilShell"},
	"application":        {"org.apache.hadoop.yarn.client.cli.ApplicationCLI", "application"},
	"applicationattempt": {"org.apache.hadoop.yarn.client.cli.ApplicationCLI", "applicationattempt"},
	"container":          {"org.apache.hadoop.yarn.client.cli.ApplicationCLI", "container"},
	"node":               {"org.apache.hadoop.yarn.client.cli.NodeCLI"},
	"logs":               {"org.apache.hadoop.yarn.client.cli.LogsCLI"},
	"queue":              {"org.apache.hadoop.yarn.client.cli.QueueCLI"},
	"rmadmin":            {"org.apache.hadoop.yarn.client.cli.RMAdminCLI"},
	"distributedshell":   {"org.apache.hadoop.yarn.applications.distributedshell.Client"},
}

// Hadoop runs one of Hadoop's own clients against the cluster, by the name
// that its scripts have for it ("fs", "-ls", "/") or by class, and returns
// what it prints. What it says on standard error is in the error. On a secure
// cluster it acts as the superuser nn.
func (c *Cluster) Hadoop(ctx context.Context, args ...string) (string, error) {
	cmd := c.HadoopCommand(ctx, args...)
	if c.opts.Security != nil {
		tickets, err := c.kdc.Tickets(ctx, "nn")
		if err != nil {
			return "", err
		}
		cmd.Env = append(cmd.Env, "KRB5CCNAME="+tickets)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("hadoop %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// HadoopCommand is the process that Hadoop would run, not yet started. On a
// secure cluster it lacks KRB5CCNAME, the tickets of the user it acts as.
func (c *Cluster) HadoopCommand(ctx context.Context, args ...string) *exec.Cmd {
	class, rest := args[:1], args[1:]
	if known, ok := commands[args[0]]; ok {
		class = known
	}
	cmd := exec.CommandContext(ctx, c.dist.Java, c.dist.Args(c.ConfDir(), "256m", class[0], c.javaOptions()...)...)
	cmd.Args = append(append(cmd.Args, class[1:]...), rest...)
	cmd.Env = c.env()
	return cmd
}

// Jar is the path of one of Hadoop's jars, by its artifact's name.
func (c *Cluster) Jar(artifact string) string { return c.dist.Jar(artifact) }
