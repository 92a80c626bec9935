package testcluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"holdfast/test/testcluster/cached"
	"holdfast/test/testcluster/dist"
	"holdfast/test/testcluster/kdc"
	"holdfast/test/testcluster/properties"
)

// format makes the NameNode's storage: a copy of one that is formatted once,
// as that takes a JVM.
func (c *Cluster) format(ctx context.Context) error {
	formatted, err := cached.Dir(ctx, "hadoop-"+dist.Version()+"-formatted-"+c.user, func(ctx context.Context, dir string) error {
		p := properties.Set{
			"hadoop.tmp.dir":        filepath.Join(dir, "tmp"),
			"fs.defaultFS":          "hdfs://127.0.0.1:1", // not used
			"dfs.namenode.name.dir": "file://" + filepath.Join(dir, "data"),
		}
		conf := filepath.Join(dir, "conf")
		if err := p.Write(conf, "INFO"); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, c.dist.Java, c.dist.Args(conf, "96m", c.Daemon("nn").class)...)
		cmd.Args = append(cmd.Args, "-format", "-nonInteractive", "-force")
		cmd.Dir, cmd.Env = dir, c.env()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("formatting the NameNode's storage: %w\n%s", err, out)
		}
		return nil
	})
	if err != nil {
		return err
	}
	copies := []string{}
	for _, name := range c.nameNodes() {
		copies = append(copies, filepath.Join(c.dir, name, "data"))
	}
	if c.opts.Standby {
		copies = append(copies, c.sharedEdits())
	}
	for _, dir := range copies {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(formatted, "data"))); err != nil {
			return fmt.Errorf("copying the NameNode's formatted storage: %w", err)
		}
		if err := c.ownPool(filepath.Join(dir, "current", "VERSION")); err != nil {
			return err
		}
	}
	return nil
}

// ownPool gives the cluster a block pool of its own, as formatting does: by it Routers
// know a block's namespace.
func (c *Cluster) ownPool(version string) error {
	b, err := os.ReadFile(version)
	if err != nil {
		return fmt.Errorf("naming the cluster's block pool: %w", err)
	}
	pool := fmt.Appendf(nil, "blockpoolID=BP-%d-%s-%d", c.ports.Base, loopback, os.Getpid())
	b = regexp.MustCompile(`(?m)^blockpoolID=.*$`).ReplaceAllLiteral(b, pool)
	if err := os.WriteFile(version, b, 0o644); err != nil {
		return fmt.Errorf("naming the cluster's block pool: %w", err)
	}
	return nil
}

// records reports whether this cluster's daemons write lists of the classes that
// they load: the first one that has all kinds does.
func (c *Cluster) records() bool { return c.dist.Archive == "" && !c.opts.HDFSOnly }

func (d *Daemon) classList() string { return filepath.Join(d.dir, "classes.list") }

// archiveClasses makes later clusters start in half the time.
func (c *Cluster) archiveClasses(ctx context.Context) error {
	if !c.records() {
		return nil
	}
	var lists []string
	for _, name := range []string{"nn", c.rmNames()[0], "dn0", "nm0"} {
		lists = append(lists, c.Daemon(name).classList())
	}
	return c.dist.MakeArchive(ctx, lists)
}

// directory is one on HDFS; its owner is HDFS's superuser if empty.
type directory struct{ path, mode, owner string }

// makeHomes makes what an administrator makes on a new cluster.
func (c *Cluster) makeHomes(ctx context.Context) error {
	directories := []directory{{"/tmp", "1777", ""}, {"/user", "755", ""}}
	if c.kdc == nil {
		directories = append(directories, directory{"/user/" + c.user, "755", ""})
	} else {
		for _, user := range []string{kdc.Alice, kdc.Bob, kdc.Stranger} {
			directories = append(directories, directory{"/user/" + user, "700", user})
		}
	}
	for _, d := range directories {
		if err := c.makeDirectory(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) makeDirectory(ctx context.Context, d directory) error {
	err := c.webhdfs(ctx, d.path, "MKDIRS", "permission", d.mode)
	if err == nil && d.owner != "" {
		err = c.webhdfs(ctx, d.path, "SETOWNER", "owner", d.owner)
	}
	if err != nil {
		return fmt.Errorf("making %s on HDFS: %w", d.path, err)
	}
	return nil
}

// browser sends requests to a web server: *http.Client without authentication,
// *spnego.Client with.
type browser interface {
	Do(*http.Request) (*http.Response, error)
}

// webhdfs carries out an operation that may be repeated; a busy machine may
// have timed it out.
func (c *Cluster) webhdfs(ctx context.Context, path, op, name, value string) error {
	u := url.URL{Scheme: "http", Host: c.reached(portNNWeb), Path: "/webhdfs/v1" + path}
	query := url.Values{"op": {op}, name: {value}}
	if c.kdc == nil {
		query.Set("user.name", c.user)
	}
	u.RawQuery = query.Encode()
	once := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), nil)
		if err != nil {
			return err
		}
		resp, err := c.browser.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", req.URL, resp.Status)
		}
		return nil
	}
	for {
		err := once()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
