// Command ours is the measured process where Holdfast's own HDFS client or
// mount is compared with others; command peer takes the same arguments.
//
//	ours [-replication N] put DIRECTORY FILE...   write each local file into an HDFS directory
//	ours get URI...                               read each HDFS file, and drop what was read
//	ours cat URI...                               the same, and print what was read
//	ours [-replication N] mounted DIRECTORY SCRIPT [ARG...]
//	                                              run a bash script in the mounted HDFS directory
//
// Files are transferred all at the same time. The Hadoop configuration is that
// of HADOOP_CONF_DIR. mounted needs a user and mount namespace of its own, with
// CAP_SYS_ADMIN in it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
)

func main() {
	replication := flag.String("replication", "", "of new `files`; empty: as configured")
	flag.Parse()
	if err := run(context.Background(), *replication, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "ours:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, replication string, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: ours put DIRECTORY FILE... | get|cat URI... | mounted DIRECTORY SCRIPT [ARG...]")
	}
	c, err := conf.Load("")
	if err != nil {
		return err
	}
	if replication != "" {
		c.Set("dfs.replication", replication)
	}
	if args[0] == "mounted" {
		return mounted(ctx, c, args[1], args[2:])
	}
	fs, err := hdfs.New(args[1], c, hdfs.Options{})
	if err != nil {
		return err
	}
	defer fs.Close()
	var all errgroup.Group
	switch args[0] {
	case "put":
		for _, file := range args[2:] {
			all.Go(func() error { return put(ctx, fs, file, args[1]) })
		}
	case "get":
		for _, uri := range args[1:] {
			all.Go(func() error { return get(ctx, fs, uri, io.Discard) })
		}
	case "cat":
		for _, uri := range args[1:] {
			if err := get(ctx, fs, uri, os.Stdout); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("there is no %q", args[0])
	}
	return all.Wait()
}

// chunk is what is read or written at once.
const chunk = 1 << 20

func put(ctx context.Context, fs *hdfs.Client, file, dir string) error {
	u, err := url.Parse(dir)
	if err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fs.Create(ctx, path.Join(u.Path, filepath.Base(file)), 0o644)
	if err != nil {
		return err
	}
	// Both only read and write: what else they can do is not what is measured.
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, chunk)); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Close()
}

func get(ctx context.Context, fs *hdfs.Client, uri string, out io.Writer) error {
	u, err := url.Parse(uri)
	if err != nil {
		return err
	}
	in, err := fs.Open(ctx, u.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, io.NewSectionReader(in, 0, in.Size()), make([]byte, chunk))
	return err
}

func mounted(ctx context.Context, c *conf.Conf, uri string, script []string) (err error) {
	store, err := store.Open(ctx, uri, c)
	if err != nil {
		return err
	}
	defer store.Close()
	dir, err := os.MkdirTemp("", "holdfast-bench-mount-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	fs, err := mount.New(store, mount.Options{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())})
	if err != nil {
		return err
	}
	if err := fs.Serve(dir); err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err = errors.Join(err, fs.Close(limited))
	}()
	if len(script) == 0 {
		return nil
	}
	// bash goes into the directory itself: this process must not wait for its
	// own mount.
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-ec", "cd \"$0\"\n" + script[0], dir}, script[1:]...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
