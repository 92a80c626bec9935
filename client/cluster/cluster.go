// Package cluster is a user's view of the Hadoop cluster that HADOOP_CONF_DIR
// describes: the connection to YARN, Holdfast's directory in a user's HDFS home with
// the keytabs in it, and what errors of YARN and HDFS mean to a user.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// Timeout is how long a command waits for an unresponsive cluster.
const Timeout = 10 * time.Second

// Cluster is the Hadoop cluster that HADOOP_CONF_DIR describes.
type Cluster struct {
	Conf *conf.Conf
	RM   *yarn.Client
	User string // as whom the ResourceManager knows this process
	// Principal and Keytab are what ConnectAs was given; empty on a cluster
	// without Kerberos.
	Principal, Keytab string
}

// Connect reads the Hadoop configuration. It does not contact the cluster yet.
func Connect() (*Cluster, error) { return ConnectAs("", "") }

// ConnectAs is Connect as a Kerberos principal whose key is in a keytab. If both are
// empty, or the cluster does not use Kerberos, it is Connect.
func ConnectAs(principal, keytab string) (*Cluster, error) {
	c, err := conf.Load("")
	if err != nil {
		return nil, client.Usagef("%w; without Hadoop, run jobs on this machine with --local", err)
	}
	if home, err := c.Resolve(homeOf(c, "")); err != nil {
		return nil, client.Usagef("the Hadoop configuration: where home directories are: %w", err)
	} else if _, err := c.NameNodes(home); err != nil {
		return nil, client.Usagef("the Hadoop configuration: %w", err)
	}
	user := rpc.CurrentUser()
	if c.Secure() {
		if user, err = logIn(c, principal, keytab); err != nil {
			return nil, err
		}
	} else {
		principal, keytab = "", ""
	}
	rm, err := yarn.NewClient(c, yarn.Options{User: user, Retry: rpc.Retry{Limit: Timeout / 2}, Timeout: Timeout})
	if err != nil {
		return nil, err
	}
	return &Cluster{Conf: c, RM: rm, User: user, Principal: principal, Keytab: keytab}, nil
}

// LocalUser returns the user of this process, as a cluster without Kerberos knows it.
func LocalUser() string { return rpc.CurrentUser() }

// logIn logs in to a cluster with Kerberos, and returns the user's name there.
func logIn(c *conf.Conf, principal, keytab string) (string, error) {
	if keytab != "" {
		u, err := kerberos.FromKeytab(principal, keytab)
		if err != nil {
			return "", err
		}
		login.As(u)
	}
	user, err := login.Name(c)
	if err != nil {
		return "", fmt.Errorf("the cluster demands Kerberos: %w", err)
	}
	return user, nil
}

// Warnings returns what is suspicious in the Hadoop configuration.
func (c *Cluster) Warnings() []string { return c.Conf.Warnings() }

// Close closes the connections.
func (c *Cluster) Close() { _ = c.RM.Close() }

// Home returns the URI of Holdfast's directory in the home of a user.
func (c *Cluster) Home(user string) string {
	home := homeOf(c.Conf, user)
	if to, err := c.Conf.Resolve(home); err == nil { // ConnectAs has tried one
		home = to
	}
	return home + "/" + proto.HomeDir
}

// homeOf returns the home directory of a user on the default file system, which may be one of
// viewfs; without a user, the directory of all homes.
func homeOf(c *conf.Conf, user string) string {
	prefix := cmp.Or(c.Get("dfs.user.home.dir.prefix"), "/user")
	if u, err := url.Parse(c.DefaultFS()); err == nil && u.Scheme == "viewfs" {
		prefix = cmp.Or(c.Get("fs.viewfs.mounttable."+u.Host+".homedir"), "/user")
	}
	return strings.TrimSuffix(c.DefaultFS()+strings.TrimSuffix(prefix, "/")+"/"+user, "/")
}

// OpenHome opens Holdfast's directory of the current user, and creates it if it does
// not exist.
func (c *Cluster) OpenHome(ctx context.Context) (store.Store, error) {
	uri := c.Home(c.User)
	s, err := c.Open(ctx, uri)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("the directory %s, where Holdfast keeps jobs and its binary, cannot be made: %w; have an HDFS administrator make the home directory %s with you (%s) as its owner",
			uri, err, strings.TrimSuffix(uri, "/"+proto.HomeDir), c.User)
	}
	if err == nil {
		if err = MakePrivate(ctx, s); err != nil {
			s.Close()
			return nil, fmt.Errorf("the directory %s, where Holdfast keeps jobs and their keys, cannot be closed to others: %w", uri, err)
		}
	}
	return s, err
}

// MakePrivate denies others access to a directory.
func MakePrivate(ctx context.Context, s store.Store) error {
	info, err := s.Stat(ctx, ".")
	if err == nil && info.Mode.Perm()&0o077 != 0 {
		err = s.Chmod(ctx, ".", 0o700)
	}
	return err
}

// Open opens a directory on HDFS and creates it if it does not exist. If HDFS does not
// answer, it fails within seconds.
func (c *Cluster) Open(ctx context.Context, uri string) (store.Store, error) {
	return c.open(ctx, uri, store.Open)
}

// OpenExisting is Open for a directory that must exist.
func (c *Cluster) OpenExisting(ctx context.Context, uri string) (store.Store, error) {
	return c.open(ctx, uri, store.OpenExisting)
}

type opener func(context.Context, string, *conf.Conf) (store.Store, error)

func (c *Cluster) open(ctx context.Context, uri string, open opener) (store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout*3/2)
	defer cancel()
	s, err := open(ctx, uri, c.Conf)
	if refused := LoginError("HDFS", err); refused != nil {
		return nil, refused
	}
	if err != nil && client.ExitCode(err) == client.ExitUnreachable {
		return nil, client.Unreachablef("HDFS does not answer: %w; check that the NameNode runs, and fs.defaultFS in the directory that %s names", err, conf.EnvDir)
	}
	return s, err
}

// YARNError explains an error of the ResourceManager to a user, and gives it an exit
// code.
func YARNError(err error) error {
	if refused := LoginError("YARN", err); refused != nil {
		return refused
	}
	if yarn.IsNotAllowed(err) {
		return client.WithExitCode(client.ExitDenied, fmt.Errorf("%w: the job's user can name others with --modify-acl when it is started", err))
	}
	if err == nil || client.ExitCode(err) != client.ExitUnreachable {
		return err
	}
	return client.Unreachablef("YARN does not answer: %w (the directory that %s names says where the ResourceManager is)", err, conf.EnvDir)
}
