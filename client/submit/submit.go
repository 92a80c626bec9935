// Package submit starts a job from its spec: on YARN, or on this machine.
//
// # Where a job is
//
// A job has a directory: on HDFS .holdfast/jobs/ID in the home of the user who
// submitted it, for a local job ~/.holdfast/jobs/ID (HOLDFAST_HOME stands for
// ~/.holdfast). In it are the spec, the keys with which the client calls the
// application master, that master's address, the job's last known state and its
// logs: package proto names the files. Only its owner may read it.
//
// The binary is at .holdfast/bin/SHA256/yarn-submit, once for all jobs, and so are
// archives, at .holdfast/archives/SHA256/NAME. Archives stay there: remove those that no
// job uses any longer.
//
// # Goroutines
//
// Functions here return after the goroutines that they have started. The
// exception is the child of Local, the application master of a local job, which is a
// process of its own session and outlives the client on purpose; a goroutine waits
// for it as long as the client lives.
package submit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/client/localfile"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/proto"
	"holdfast/runtime"
)

// MasterResource is the container of an application master with up to masterBaseTasks
// tasks. It gets another megabyte for every masterTasksPerMB tasks beyond that.
var MasterResource = yarn.Resource{MemoryMB: 256, VCores: 1}

const (
	masterBaseTasks  = 1000
	masterTasksPerMB = 12
)

// resourceOfMaster returns the container that a job's application master asks for.
func resourceOfMaster(spec *proto.JobSpec) yarn.Resource {
	usual := MasterResource.MemoryMB + int64(max(0, runtime.Count(spec)-masterBaseTasks)/masterTasksPerMB)
	return yarn.Resource{MemoryMB: cmp.Or(spec.AmMemoryMb, usual), VCores: cmp.Or(spec.AmVcores, MasterResource.VCores)}
}

// memoryLimit returns the soft memory limit (GOMEMLIMIT) of a process in a container:
// YARN kills a container that exceeds its memory, so the garbage collector has to work
// harder before that.
func memoryLimit(r yarn.Resource) string { return fmt.Sprintf("%dMiB", r.MemoryMB*9/10) }

// environmentOfMaster returns what a job's application master finds in its environment.
func environmentOfMaster(job, directory string, r yarn.Resource) map[string]string {
	return map[string]string{proto.EnvJob: job, proto.EnvJobDirectory: directory, "GOMEMLIMIT": memoryLimit(r)}
}

// How many times YARN restarts an application master within which interval. YARN itself
// allows fewer by default (yarn.resourcemanager.am.max-attempts).
const (
	masterAttempts       = 10
	masterAttemptsWithin = 10 * time.Minute
)

// ToYARN checks the spec against the cluster, uploads the binary and the inputs, and
// submits the job, which then owns c. exe is the path of the binary. If it fails,
// nothing of the job is left on the cluster. It reports what it waits for and what it
// cleaned up through notify, and what it uploads through progress, which may be nil.
func ToYARN(ctx context.Context, c *cluster.Cluster, spec *proto.JobSpec, exe string, notify Notify, progress Progress) (_ *jobs.Job, err error) {
	// Independent checks run concurrently: each takes several round trips, and a person
	// is waiting.
	keep, err := retention()
	if err != nil {
		return nil, err
	}
	if err := resolveCheckpoints(c.Conf, spec); err != nil {
		return nil, err
	}
	var home store.Store
	var id yarn.ApplicationID
	var sum string
	g, checking := errgroup.WithContext(ctx)
	g.Go(func() (err error) { id, err = NewApplication(checking, c, spec); return err })
	g.Go(func() error { return checkCheckpoints(checking, c, spec, notify) })
	g.Go(func() (err error) { home, err = c.OpenHome(checking); return err })
	g.Go(func() (err error) { sum, err = localfile.Digest(checking, exe); return err })
	if err := g.Wait(); err != nil {
		if home != nil {
			home.Close()
		}
		return nil, err
	}
	job := jobs.OnCluster(c, id, home)
	dir := jobs.Directory(job.ID)
	defer func() {
		if err != nil {
			cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.Timeout)
			defer cancel()
			_ = store.RemoveAll(cleaning, home, dir) // the error that led here is the one to tell
			_ = c.RemoveKeytab(cleaning, home, job.ID)
			job.Close()
		}
	}()
	spec.User = c.User
	set, err := jobtls.New(job.ID)
	if err != nil {
		return nil, err
	}
	var binary, keytab yarn.LocalResource
	var archives []yarn.LocalResource
	files := newTransfer(progress)
	var credentials *token.Credentials
	g, uploading := errgroup.WithContext(ctx)
	g.Go(func() error { return removeStaleKeytabs(uploading, c, home) })
	g.Go(func() error {
		removeOldJobs(uploading, home, keep, notify, jobsOn(c, home))
		return nil
	})
	if c.Keytab != "" {
		g.Go(func() (err error) { keytab, err = uploadKeytab(uploading, c, home, job.ID); return err })
	}
	g.Go(func() (err error) { binary, err = uploadBinary(uploading, home, exe, sum, files); return err })
	g.Go(func() (err error) { credentials, err = masterCredentials(uploading, c, set, spec); return err })
	g.Go(func() (err error) {
		if archives, err = upload(uploading, home, dir, spec, set, files); err != nil {
			return fmt.Errorf("bring the job's files to %s: %w", job.URI(), err)
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	resource := resourceOfMaster(spec)
	environment := environmentOfMaster(job.ID, job.URI(), resource)
	master := []yarn.LocalResource{binary}
	if c.Keytab != "" {
		master = append(master, keytab)
		environment[proto.EnvPrincipal], environment[proto.EnvKeytab] = c.Principal, keytab.URI
	}
	submitting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	application, err := submissionOf(spec)
	if err != nil {
		return nil, err
	}
	application.ID, application.Master = id, resource
	application.Launch = yarn.Launch{
		Resources:   master,
		Environment: environment,
		Credentials: credentials,
		ViewACL:     spec.ViewAcl, ModifyACL: spec.ModifyAcl,
	}.In(yarn.ImageOf(spec.Image, spec))
	application.Agents = append([]yarn.LocalResource{binary}, archives...)
	// As late as can be: others take a job that YARN does not know yet for one that was lost.
	claimed, err := claimAll(submitting, spec, job.ID, onHDFS, c.Open)
	if err != nil {
		return nil, err
	}
	if err = Application(submitting, c, application); err == nil {
		if err = checkPlaced(submitting, c, spec, id, notify); err != nil {
			Abandon(ctx, c, id)
		}
	}
	if err != nil {
		claimed.remove(ctx)
		return nil, err
	}
	job.SetStarted(set.Client, nil)
	return job, nil
}

// submissionOf returns what a job's spec says of its application.
func submissionOf(spec *proto.JobSpec) (yarn.Submission, error) {
	reservation, err := reservationOf(spec)
	return yarn.Submission{
		Name: spec.Name, Queue: spec.Queue,
		NodeLabel: spec.NodeLabel, Tags: spec.Tags, Priority: spec.Priority, Reservation: reservation,
		Lifetime:    time.Duration(spec.LifetimeMs) * time.Millisecond,
		Logs:        yarn.LogAggregation{Include: spec.LogInclude, Exclude: spec.LogExclude},
		MaxAttempts: masterAttempts, AttemptsWithin: masterAttemptsWithin, KeepContainers: true,
	}, err
}

// reservationOf returns the reservation that a job uses; zero if none.
func reservationOf(spec *proto.JobSpec) (yarn.ReservationID, error) {
	if spec.Reservation == "" {
		return yarn.ReservationID{}, nil
	}
	return yarn.ParseReservationID(spec.Reservation)
}

// Application submits an application. On failure it kills the application, in case the
// ResourceManager has accepted it nevertheless.
func Application(ctx context.Context, c *cluster.Cluster, s yarn.Submission) error {
	if err := c.RM.Submit(ctx, s); err != nil {
		Abandon(ctx, c, s.ID)
		return queueError(c, s.Queue, err)
	}
	return nil
}

// Abandon kills an application whose submission failed, or that the client no longer
// waits for. The application may be unknown to the ResourceManager.
func Abandon(ctx context.Context, c *cluster.Cluster, id yarn.ApplicationID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.Timeout)
	defer cancel()
	_ = c.RM.Kill(ctx, id, "its submission failed") // most often it is not there
}
