package delegation

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/kms"
	"holdfast/internal/hadoop/token"
)

// on returns the URIs that are on the file system with tokens of a service.
func on(c *conf.Conf, service string, uris []string) []string {
	var list []string
	for _, u := range uris {
		for s := range fileSystems(c, []string{u}) {
			if s == service {
				list = append(list, u)
			}
		}
	}
	return list
}

// zoneToken obtains a token for a file system's key servers, if one of the URIs is in
// an encryption zone. The ResourceManager renews it like others.
func zoneToken(ctx context.Context, c *conf.Conf, client *hdfs.Client, own *token.Credentials, renewer string, uris []string) (t token.Token, wanted bool, err error) {
	provider, err := client.KeyProvider(ctx)
	if err != nil || provider == "" {
		return t, false, err
	}
	for _, uri := range uris {
		u, err := url.Parse(uri)
		if err != nil {
			return t, false, err
		}
		zone, err := client.Zone(ctx, u.Path)
		if err != nil {
			return t, false, fmt.Errorf("find out whether %s is in an encryption zone: %w", uri, err)
		}
		if zone == nil {
			continue
		}
		if t, there := own.Find(token.KindKMS, provider); there {
			return t, true, nil
		}
		keys, err := kms.NewKerberos(provider, c)
		if err == nil {
			t, err = keys.DelegationToken(ctx, renewer)
			keys.Close()
		}
		if err != nil {
			return t, false, fmt.Errorf("%s is in the encryption zone %s, with the key %q: get a delegation token from %s: %w", uri, zone.Root, zone.Key, provider, err)
		}
		return t, true, nil
	}
	return t, false, nil
}

// renewKeys renews the tokens for key servers and returns when the first of them
// ends; zero if there is none.
func renewKeys(ctx context.Context, c *conf.Conf, all *token.Credentials) (first time.Time, err error) {
	for _, t := range all.Tokens {
		if t.Kind != token.KindKMS {
			continue
		}
		keys, err := kms.NewKerberos(t.Service, c)
		if err != nil {
			return first, err
		}
		end, err := keys.RenewToken(ctx, t)
		keys.Close()
		if err != nil {
			return first, fmt.Errorf("renew the delegation token for %s: %w", t.Service, err)
		}
		if first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first, nil
}
