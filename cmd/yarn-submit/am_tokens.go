package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/sirupsen/logrus"

	"holdfast/am"
	"holdfast/am/yarn"
	"holdfast/hdfsckpt"
	"holdfast/internal/hadoop/delegation"
	"holdfast/internal/hadoop/token"
	"holdfast/proto"
)

// tokenKeeper makes the keeper of the job's HDFS tokens, where its user has left
// a keytab with it; nil otherwise. It logs in already: the ResourceManager's
// token, which nobody replaces, is then not needed.
func tokenKeeper(ctx context.Context, dir hdfsckpt.Store, spec *proto.JobSpec, s secrets) (*delegation.Keeper, error) {
	principal := os.Getenv(proto.EnvPrincipal)
	if principal == "" || s.conf == nil || !s.conf.Secure() {
		return nil, nil
	}
	keytab, err := hdfsckpt.ReadFile(ctx, dir, proto.KeytabFile)
	if err != nil {
		return nil, fmt.Errorf("reading the job's keytab: %w", err)
	}
	k := &delegation.Keeper{
		Conf: s.conf, Principal: principal, Keytab: keytab, Source: dir.URI() + "/" + proto.KeytabFile,
		URIs: append(spec.CheckpointURIs(), dir.URI()), Log: logrus.WithField("app", os.Getenv(proto.EnvJob)),
	}
	if err := k.Login(); err != nil {
		k.Log.WithError(err).Warn("cannot log in yet; for now the tokens that the job was submitted with are used")
	} else {
		s.RemoveKind(token.KindRM)
	}
	return k, nil
}

// keepTokens lets the keeper work until the returned function is called: new
// tokens go to this process, to the agents that run and to those to come.
func keepTokens(ctx context.Context, k *delegation.Keeper, m *am.Master, driver am.Driver) (stop func()) {
	if k == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	k.Use = func(c *token.Credentials) {
		content := c.Marshal()
		if err := token.Replace(content); err != nil {
			k.Log.WithError(err).Error("the application master cannot take its new tokens")
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
