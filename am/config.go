package am

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/checkpoint"
	"holdfast/am/core"
	"holdfast/am/recovery"
	"holdfast/am/server"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// Config is what a master needs to know.
type Config struct {
	ID   string         // of the job
	Spec *proto.JobSpec // complete: see runtime.Complete
	Dir  store.Store    // the job's directory
	Keys jobtls.Keys    // the master's
	// OpenStore opens a checkpoint directory.
	OpenStore func(ctx context.Context, uri string) (store.Store, error)
	// Attempt counts the application masters of the job, from 1. It is 0 where no master
	// can take over from another; then no journal is written.
	Attempt int
	// Predecessor is what was found of the previous attempt; nil if there was none.
	Predecessor *recovery.Predecessor
	Listener    *server.Listener // closed when Run returns
	Limits      core.Limits      // what is zero comes from Spec, or is core's default
	Log         *logrus.Entry
}

// Recovery returns where the master finds its predecessor.
func (c Config) Recovery() recovery.Config {
	return recovery.Config{Job: c.ID, Attempt: c.Attempt, Dir: c.Dir, Checkpoints: c.Spec.Checkpoints, OpenStore: c.OpenStore}
}

func (c Config) checkpoint() checkpoint.Config {
	return checkpoint.Config{Job: c.ID, Checkpoints: c.Spec.Checkpoints, Files: c.Spec.Files, OpenStore: c.OpenStore, Log: c.Log}
}

// ReadSpec reads the spec from a job's directory.
func ReadSpec(ctx context.Context, dir store.Store) (*proto.JobSpec, error) {
	text, err := store.ReadFile(ctx, dir, proto.SpecFile)
	if err != nil {
		return nil, fmt.Errorf("reading the job's spec: %w", err)
	}
	spec := &proto.JobSpec{}
	if err := protojson.Unmarshal(text, spec); err != nil {
		return nil, fmt.Errorf("reading the job's spec %s/%s: %w", dir.URI(), proto.SpecFile, err)
	}
	return spec, nil
}
