package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"holdfast/test/bench"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// dataProtection is a way to protect what goes to and from DataNodes.
type dataProtection struct {
	name, data      string
	encrypt, suites string
	algorithm       string
}

var protections = []dataProtection{
	{"authentication", "authentication", "false", "", ""},
	{"integrity", "integrity", "false", "", ""},
	{"privacy, AES", "privacy", "false", aes, ""},
	{"privacy, without AES", "privacy", "false", "", ""},
	{"encryption, AES", "authentication", "true", aes, ""},
	{"encryption, 3DES", "authentication", "true", "", "3des"},
	{"encryption, RC4", "authentication", "true", "", "rc4"},
}

func (p dataProtection) properties() map[string]string {
	return map[string]string{
		"dfs.data.transfer.protection":            p.data,
		"dfs.encrypt.data.transfer":               p.encrypt,
		"dfs.encrypt.data.transfer.cipher.suites": p.suites,
		"dfs.encrypt.data.transfer.algorithm":     p.algorithm,
	}
}

const aes = "AES/CTR/NoPadding"

// protectedPart is how much of Options.FileMB is transferred at each
// protection: some of the ciphers are very slow.
const protectedPart = 8

// Protection compares writing and reading one file on a cluster with Kerberos, at
// each protection of data transfer. It is a cluster of its own.
func (b *Files) Protection(ctx context.Context) error {
	return b.withKerberos(ctx, func(secure *Files, tickets string) error { return secure.protectedRates(ctx, tickets) })
}

// withKerberos does something on a cluster with Kerberos that is started for it, with
// alice's tickets.
func (b *Files) withKerberos(ctx context.Context, do func(secure *Files, tickets string) error) (err error) {
	c, err := testcluster.Start(ctx, testcluster.Options{HDFSOnly: true, Security: &testcluster.Security{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	tickets, err := c.KDC().Tickets(ctx, kdc.Alice)
	if err != nil {
		return err
	}
	return do(b.with(c), tickets)
}

func (b *Files) protectedRates(ctx context.Context, tickets string) error {
	mb := max(1, b.FileMB/protectedPart)
	for _, p := range protections {
		if err := b.Cluster.Reconfigure(ctx, p.properties()); err != nil {
			return err
		}
		written, read, err := b.protected(ctx, mb, tickets)
		if err != nil {
			return err
		}
		b.Title(fmt.Sprintf("%d MB at a time, replication 3, data transfer by %s", mb, p.name))
		for _, r := range []struct {
			what string
			rate map[string]bench.Series
		}{{"written", written}, {"read", read}} {
			for _, name := range []string{client, javaIO} {
				bench.Line(b.Out, name+", "+r.what, r.rate[name].Format(" MB/s", 0))
			}
			bench.Line(b.Out, "times as fast", bench.Ratios(r.rate[client], r.rate[javaIO]).Format("", 2))
		}
		fmt.Fprintln(b.Out)
	}
	return nil
}

// protected writes and reads files of so many MB as alice, and returns the rates
// of both contestants in MB/s. What a JVM's start takes varies by more than what
// some of the transfers take, so that the median of all is taken off each.
func (b *Files) protected(ctx context.Context, mb int, tickets string) (written, read map[string]bench.Series, err error) {
	const home = "/user/" + kdc.Alice
	var starts bench.Series
	wrote, got := map[string]bench.Series{}, map[string]bench.Series{} // seconds
	timed := func(cmd *exec.Cmd) (float64, error) {
		cmd.Env = append(cmd.Env, "KRB5_CONFIG="+b.Cluster.KDC().Config(), "KRB5CCNAME="+tickets)
		u, err := bench.Measure(cmd)
		return u.Wall, err
	}
	for round := range b.Pairs + 1 { // the first warms the caches and does not count
		started, err := timed(b.shell(ctx, "-ls", home))
		if err != nil {
			return nil, nil, err
		}
		if round > 0 {
			starts = append(starts, started)
		}
		for i, name := range []string{client, javaIO} {
			local := filepath.Join(b.Dir, fmt.Sprintf("protected-%d-%d", round, i))
			if err := noise(local, int64(mb)<<20, byte(round)); err != nil {
				return nil, nil, err
			}
			uri := b.Cluster.HDFS() + home + "/" + filepath.Base(local)
			put, get := b.program(ctx, "ours", "put", b.Cluster.HDFS()+home, local), b.program(ctx, "ours", "get", uri)
			if name == javaIO {
				put, get = b.shell(ctx, "-put", local, uri), b.shell(ctx, "-cat", uri)
				get.Stdout = nowhere
			}
			putting, err := timed(put)
			if err != nil {
				return nil, nil, err
			}
			getting, err := timed(get)
			if err := errors.Join(err, os.Remove(local)); err != nil {
				return nil, nil, err
			}
			if round > 0 {
				wrote[name], got[name] = append(wrote[name], putting), append(got[name], getting)
			}
		}
	}
	rates := func(took map[string]bench.Series) map[string]bench.Series {
		all := map[string]bench.Series{}
		for name, seconds := range took {
			for _, x := range seconds {
				if name == javaIO {
					x -= starts.Median()
				}
				all[name] = append(all[name], float64(mb)/x)
			}
		}
		return all
	}
	_, err = b.Cluster.Hadoop(ctx, "fs", "-rm", "-skipTrash", home+"/protected-*")
	return rates(wrote), rates(got), err
}
