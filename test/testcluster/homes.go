package testcluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/spnego"
)

// directory is one on HDFS; its owner is HDFS's superuser if empty.
type directory struct{ path, mode, owner string }

// makeHomes makes what an administrator makes on a new cluster.
func (c *Cluster) makeHomes(ctx context.Context) error {
	directories := []directory{{"/tmp", "1777", ""}, {"/user", "755", ""}}
	if c.kdc == nil {
		directories = append(directories, directory{"/user/" + c.user, "755", ""})
	} else {
		for _, user := range []string{Alice, Bob, Stranger} {
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

// superuser is a browser of the NameNode's principal, which is HDFS's superuser.
func (k *KDC) superuser() (*spnego.Client, error) {
	cfg, err := config.Load(k.Config())
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", k.Config(), err)
	}
	keys, err := keytab.Load(k.Keytab("nn"))
	if err != nil {
		return nil, fmt.Errorf("reading the NameNode's keytab: %w", err)
	}
	login := client.NewWithKeytab("nn/localhost", Realm, keys, cfg, client.DisablePAFXFAST(true))
	own := *web // NewClient changes what it is given
	return spnego.NewClient(login, &own, "HTTP/localhost"), nil
}

// webhdfs carries out an operation that may be repeated; a busy machine may
// have timed it out.
func (c *Cluster) webhdfs(ctx context.Context, path, op, name, value string) error {
	u := url.URL{Scheme: "http", Host: c.ports.addr(loopback, portNNWeb), Path: "/webhdfs/v1" + path}
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
