package incontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am"
	"holdfast/am/yarn"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/delegation"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/proto"
)

// tokenRefresher makes what refreshes the job's HDFS tokens, where its user has left
// a keytab with it; nil otherwise. It logs in already: the ResourceManager's
// token, which nobody replaces, is then not needed.
//
// YARN starts every attempt with the tokens of the job's submission. They may
// have ended before a later attempt begins, so it gets one for the job's
// directory before anything is read there; and where they have, it waits a while
// for a KDC or NameNode that is away, as it could do nothing without.
func tokenRefresher(ctx context.Context, s secrets, attempt int) (*delegation.Refresher, error) {
	principal, uri := os.Getenv(proto.EnvPrincipal), os.Getenv(proto.EnvKeytab)
	if principal == "" || s.conf == nil || !s.conf.Secure() {
		return nil, nil
	}
	keytab, err := os.ReadFile(proto.KeytabFile)
	if err != nil {
		return nil, fmt.Errorf("reading the job's keytab, which YARN should have brought from %s: %w", uri, err)
	}
	k := &delegation.Refresher{
		Conf: s.conf, Principal: principal, Keytab: keytab, Source: uri,
		URIs: []string{os.Getenv(proto.EnvJobDirectory)}, Log: logrus.WithField("app", os.Getenv(proto.EnvJob)),
	}
	if attempt == 1 {
		err = k.Login()
	} else {
		err = s.renew(ctx, k)
	}
	if err != nil {
		k.Log.Warnf("cannot log in yet; for now the tokens that the job was submitted with are used: %v", err)
		return k, nil
	}
	s.RemoveKind(token.KindRM)
	return k, nil
}

// loginFor is how long an attempt whose tokens have ended tries to log in. YARN
// gives it more time to register (yarn.am.liveness-monitor.expiry-interval-ms).
const loginFor = 2 * time.Minute

// renew puts new tokens in place of those that YARN gave.
func (s secrets) renew(ctx context.Context, k *delegation.Refresher) error {
	begun, end := time.Now(), tokensEnd(s).to
	for {
		fresh, _, err := k.Get(ctx)
		if err == nil {
			s.Take(fresh)
			return token.Replace(fresh.Marshal())
		}
		if time.Now().Before(end) || time.Since(begun) > loginFor || ctx.Err() != nil {
			return err
		}
		k.Log.Warnf("the tokens have ended, and there are no new ones yet; trying again: %v", err)
		backoff.Sleep(ctx, time.Second)
	}
}

// refreshTokens keeps the tokens for the file systems of the URIs fresh until the
// returned function is called: new ones go to this process, to the agents that run
// and to those to come. Without a refresher, the job ends before its tokens do.
func refreshTokens(ctx context.Context, k *delegation.Refresher, uris []string, s secrets, m *am.Master, driver am.Driver) (stop func()) {
	if k == nil {
		return endBefore(tokensEnd(s), m)
	}
	ctx, cancel := context.WithCancel(ctx)
	k.URIs = uris
	k.Use = func(c *token.Credentials) {
		content := c.Marshal()
		if err := token.Replace(content); err != nil {
			k.Log.Warnf("the application master cannot take its new tokens: %v", err)
		}
		m.NewTokens(content)
		if d, ok := driver.(*yarn.Driver); ok {
			d.NewTokens(c)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { k.Run(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// lifespan is when something ends that was made at some time.
type lifespan struct{ from, to time.Time }

// tokensEnd is the life of the token for HDFS or its keys that ends first, however
// often it is renewed; zero if there is none.
func tokensEnd(s secrets) (first lifespan) {
	for _, t := range s.Tokens {
		if t.Kind != token.KindHDFS && t.Kind != token.KindKMS {
			continue
		}
		d, err := t.Delegation()
		if err == nil && (first.to.IsZero() || d.Max.Before(first.to)) {
			first = lifespan{d.Issued, d.Max}
		}
	}
	return first
}

// What a job needs to end in order: to stop its tasks, seal their last
// checkpoint and save their logs. Of short lives it is a part.
const (
	timeToEnd = 2 * time.Minute
	partToEnd = 4
)

// endBefore ends the job in time before its tokens end, when nothing can be
// written to HDFS any longer.
func endBefore(l lifespan, m *am.Master) (stop func()) {
	if l.to.IsZero() {
		return func() {}
	}
	at := l.to.Add(-min(timeToEnd, l.to.Sub(l.from)/partToEnd))
	t := time.AfterFunc(time.Until(at), func() {
		m.GiveUp(fmt.Sprintf("its HDFS tokens end at %s, after their maximum lifetime, and only a keytab gets new ones; submit it again to go on from the last checkpoint, with --principal and --keytab to let it run for longer than %s",
			l.to.Format(time.DateTime), l.to.Sub(l.from)))
	})
	return func() { t.Stop() }
}

// ended says what to do where err is that tokens have ended.
func ended(err error) error {
	if !rpc.IsInvalidToken(err) {
		return err
	}
	return fmt.Errorf("the job's HDFS tokens have ended, and only a keytab gets new ones; submit it again to go on from the last checkpoint, with --principal and --keytab to let it run for longer: %w", err)
}

// removeKeytab removes the keytab of the job, which is over, from HDFS. Where
// that fails, the user's next submission does it.
func removeKeytab(ctx context.Context, s secrets, log *logrus.Entry) {
	uri := os.Getenv(proto.EnvKeytab)
	if uri == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	name := path.Base(uri)
	dir, err := store.OpenExisting(ctx, strings.TrimSuffix(uri, "/"+name), s.conf)
	if err == nil {
		defer dir.Close()
		err = dir.Remove(ctx, name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.WithError(err).Errorf("the keytab %s is still there; the next job of its user removes it", uri)
	}
}
