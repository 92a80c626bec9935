package delegation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/notice"
	"holdfast/internal/hadoop/token"
)

// Refresher replaces tokens in time, for a process that has a keytab and for others
// that have not.
type Refresher struct {
	Conf      *conf.Conf
	Principal string
	Keytab    []byte // a keytab's content
	Source    string // where it is from, for messages
	URIs      []string
	// Use is called with each new set of tokens, while the old one is still valid.
	Use func(*token.Credentials)
	Log notice.Log
}

// Run obtains tokens at once, and new ones whenever half of the time until their expiry has
// passed. It returns when ctx ends. Errors are logged and tried again: the other half of the
// time is left for that, or for another process that takes over from this one.
//
// The expiry is the time by which tokens must be renewed. They are replaced instead, so that
// they do not reach their maximum lifetime.
func (k *Refresher) Run(ctx context.Context) {
	var until time.Time // the last ones are good
	for {
		tokens, end, err := k.Get(ctx)
		wait := time.Duration(0)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait = min(retryMost, max(retryLeast, time.Until(until)/10))
			if next, refused := kerberos.RefusedUntil(err); refused {
				wait = max(wait, time.Until(next))
			}
			k.Log.Warnf("cannot get new HDFS tokens; trying again in %s: %v", wait.Round(time.Second), err)
		default:
			k.Use(tokens)
			until, wait = end, time.Until(end)/2
			k.Log.Infof("the job has new HDFS tokens, good until %s", end.Format(time.RFC3339))
		}
		if !backoff.Sleep(ctx, max(wait, retryLeast)) {
			return
		}
	}
}

// Pauses after a failure.
const (
	retryLeast = time.Second
	retryMost  = time.Minute
)

// Login makes this process act as the principal.
func (k *Refresher) Login() error {
	u, err := kerberos.FromKeys(k.Principal, k.Keytab, k.Source)
	if err != nil {
		return err
	}
	login.As(u)
	return nil
}

// Get logs in and obtains tokens. It returns when the first of them expires.
func (k *Refresher) Get(ctx context.Context) (*token.Credentials, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := k.Login(); err != nil {
		return nil, time.Time{}, err
	}
	// Only their renewer can learn how long they are valid.
	tokens, err := get(ctx, k.Conf, token.New(), k.Principal, k.URIs)
	if err != nil {
		return nil, time.Time{}, err
	}
	end, err := renew(ctx, k.Conf, tokens, k.URIs)
	return tokens, end, err
}

// renew renews tokens and returns when the first of them expires.
func renew(ctx context.Context, c *conf.Conf, all *token.Credentials, uris []string) (time.Time, error) {
	var first time.Time
	for service, u := range fileSystems(c, uris) {
		t, ok := all.Find(token.KindHDFS, service)
		if !ok {
			continue
		}
		client, err := hdfs.New(u, c, hdfs.Options{Kerberos: true})
		if err != nil {
			return first, err
		}
		end, err := client.RenewToken(ctx, t)
		client.Close()
		if err != nil {
			return first, fmt.Errorf("renew the delegation token for %s: %w", u, err)
		}
		if first.IsZero() || end.Before(first) {
			first = end
		}
	}
	if end, err := renewKeys(ctx, c, all); err != nil || !end.IsZero() && end.Before(first) {
		return end, err
	}
	if first.IsZero() {
		return first, errors.New("the job has no file system that gives tokens")
	}
	return first, nil
}
