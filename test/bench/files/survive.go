package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/test/bench"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// Survive tells what becomes of a transfer by each Go client where another one's
// ends: when a DataNode dies in the middle of a write, and at the protections of data
// transfer. It is on clusters of its own, and has no figures: the outcome is whether
// the bytes are all there.
func (b *Files) Survive(ctx context.Context) error {
	if err := b.surviveLoss(ctx); err != nil {
		return err
	}
	return b.withKerberos(ctx, func(secure *Files, tickets string) error { return secure.surviveProtection(ctx, tickets) })
}

// A write that takes some seconds, of which the DataNode sees half.
const (
	slowPieces = 48 // of a MiB each
	slowPause  = 50 * time.Millisecond
)

func (b *Files) surviveLoss(ctx context.Context) (err error) {
	c, err := testcluster.Start(ctx, testcluster.Options{HDFSOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	own := b.with(c)
	b.Title("A DataNode is killed in the middle of a write, replication 3")
	for _, name := range []string{"ours", "peer"} {
		outcome, err := own.writeThroughLoss(ctx, name)
		if err != nil {
			return err
		}
		bench.Line(b.Out, contestant(name), outcome)
		if err := c.Daemon("dn1").Restart(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(b.Out)
	return nil
}

func contestant(program string) string {
	if program == "peer" {
		return peer
	}
	return client
}

// writeThroughLoss has a program write what comes slowly through a pipe.
func (b *Files) writeThroughLoss(ctx context.Context, program string) (outcome string, err error) {
	pipe := filepath.Join(b.Dir, "slow-"+program)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return "", fmt.Errorf("making a pipe: %w", err)
	}
	cmd := b.program(ctx, program, "-replication", "3", "put", b.Cluster.HDFS()+"/", pipe)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return "", err
	}
	wrote := sha256.New()
	fed := b.feed(pipe, wrote)
	ended := cmd.Wait()
	if fed != nil && ended == nil {
		return "", fed
	}
	if ended != nil {
		return "failed: " + lastLine(said.String()), nil
	}
	same, err := b.readsAs(ctx, b.Cluster.HadoopCommand(ctx, "fs", "-cat", "/"+filepath.Base(pipe)), wrote)
	return same, err
}

// feed writes into the pipe, and kills a DataNode halfway.
func (b *Files) feed(pipe string, wrote hash.Hash) (err error) {
	out, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	piece := make([]byte, 1<<20)
	for i := range slowPieces {
		if i == slowPieces/2 {
			if err := b.Cluster.Daemon("dn1").Kill(); err != nil {
				return err
			}
		}
		for j := range piece {
			piece[j] = byte(i + j*7)
		}
		wrote.Write(piece)
		if _, err := out.Write(piece); err != nil {
			return err
		}
		time.Sleep(slowPause) // what is measured is a slow writer
	}
	return nil
}

// readsAs reports whether what a command prints is what was written.
func (b *Files) readsAs(ctx context.Context, cmd *exec.Cmd, wrote hash.Hash) (string, error) {
	read := sha256.New()
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = read, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "cannot be read: " + lastLine(said.String()), nil
	}
	if string(read.Sum(nil)) != string(wrote.Sum(nil)) {
		return "other bytes than were written", nil
	}
	return "all bytes are there", nil
}

// surviveProtection reads a file that Java wrote, at each protection.
func (b *Files) surviveProtection(ctx context.Context, tickets string) error {
	file := filepath.Join(b.Dir, "survives")
	if err := noise(file, 8<<20, 1); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	wrote := sha256.New()
	wrote.Write(text)
	const to = "/user/" + kdc.Alice + "/survives"
	put := b.shell(ctx, "-put", file, to)
	put.Env = append(put.Env, "KRB5CCNAME="+tickets)
	if out, err := put.CombinedOutput(); err != nil {
		return fmt.Errorf("writing a file: %w\n%s", err, out)
	}
	b.Title("A file that Java wrote is read, data transfer protected")
	for _, p := range protections {
		if err := b.Cluster.Reconfigure(ctx, p.properties()); err != nil {
			return err
		}
		for _, name := range []string{"ours", "peer"} {
			cmd := b.program(ctx, name, "cat", b.Cluster.HDFS()+to)
			cmd.Env = append(cmd.Env, "KRB5_CONFIG="+b.Cluster.KDC().Config(), "KRB5CCNAME="+tickets)
			outcome, err := b.readsAs(ctx, cmd, wrote)
			if err != nil {
				return err
			}
			bench.Line(b.Out, contestant(name)+", "+p.name, outcome)
		}
	}
	fmt.Fprintln(b.Out)
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
