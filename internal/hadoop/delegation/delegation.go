// Package delegation obtains delegation tokens from the services of a secure
// cluster, for processes that have no Kerberos tickets: those in containers.
package delegation

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
)

// Renewer returns the principal that is to renew the cluster's tokens: the ResourceManager,
// which does that for as long as an application runs.
func Renewer(ctx context.Context, c *conf.Conf) (string, error) {
	rms, err := c.ResourceManagers()
	if err != nil {
		return "", err
	}
	p := login.ResourceManager(c)
	if p.Name == "" {
		return "", fmt.Errorf("the ResourceManager's principal is not known, and without it the job's tokens cannot be renewed: set %s in yarn-site.xml", p.Key)
	}
	return p.At(ctx, rms.Client[0]), nil
}

// HDFS gets a token for each file system of the hdfs:// URIs, and one for the file system's
// key servers if a URI is in an encryption zone. A token in this process's own credentials is
// used as it is, since services give tokens only to clients that have authenticated by
// Kerberos.
func HDFS(ctx context.Context, c *conf.Conf, renewer string, uris []string) (*token.Credentials, error) {
	own, err := token.FromEnvironment()
	if err != nil {
		return nil, err
	}
	return get(ctx, c, own, renewer, uris)
}

func get(ctx context.Context, c *conf.Conf, own *token.Credentials, renewer string, uris []string) (*token.Credentials, error) {
	services := fileSystems(c, uris)
	tokens := make(chan token.Token, 2*len(services))
	g, ctx := errgroup.WithContext(ctx)
	for service, uri := range services {
		g.Go(func() error {
			t, there := own.Find(token.KindHDFS, service)
			client, err := hdfs.New(uri, c, hdfs.Options{Kerberos: !there})
			if err != nil {
				return err
			}
			defer client.Close()
			if !there {
				if t, err = client.DelegationToken(ctx, renewer); err != nil {
					return fmt.Errorf("get a delegation token for %s: %w", uri, err)
				}
				t.Service = service
			}
			tokens <- t
			if t, there, err = zoneToken(ctx, c, client, own, renewer, on(c, service, uris)); there {
				tokens <- t
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	close(tokens)
	all := token.New()
	for t := range tokens {
		all.Tokens[t.Service] = t
	}
	return all, nil
}

// fileSystems returns one URI of each file system, by the service of its tokens. A
// URI whose file system the configuration does not know is its own service:
// its first use returns what is wrong.
func fileSystems(c *conf.Conf, uris []string) map[string]string {
	all := map[string]string{}
	for _, u := range uris {
		if !strings.HasPrefix(u, "hdfs:") {
			continue
		}
		service, err := hdfs.TokenService(u, c)
		if err != nil {
			service = u
		}
		all[service] = u
	}
	return all
}

// ResourceManager gets a token for the ResourceManager. Its service names all
// of them (ClientRMProxy.getRMDelegationTokenService).
func ResourceManager(ctx context.Context, c *conf.Conf, client *yarn.Client, renewer string) (token.Token, error) {
	own, err := token.FromEnvironment()
	if err != nil {
		return token.Token{}, err
	}
	if t, ok := own.Find(token.KindRM, ""); ok {
		return t, nil
	}
	rms, err := c.ResourceManagers()
	if err != nil {
		return token.Token{}, err
	}
	var services []string
	for _, a := range rms.Client {
		services = append(services, c.TokenService(a))
	}
	t, err := client.DelegationToken(ctx, renewer)
	if err != nil {
		return token.Token{}, err
	}
	t.Service = strings.Join(services, ",")
	return t, nil
}
