package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/delegation"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/proto"
	"holdfast/runtime"
)

// binaryName is the name of the binary in containers and in its directory.
const binaryName = "yarn-submit"

// sharedTime is what a binary or an archive on HDFS was modified at. NodeManagers refuse one that is
// newer than they were told, and two who submit at once may both bring it.
var sharedTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// jobsDir holds the directories of jobs, below Holdfast's home.
const jobsDir = "jobs"

// masterResource is what the application master asks for itself, for a job of
// masterFew tasks at most; masterTasksPerMB is how many more a megabyte is for.
var masterResource = yarn.Resource{MemoryMB: 256, VCores: 1}

const (
	masterFew        = 1000
	masterTasksPerMB = 12
)

// resourceOfMaster is what the master of a job asks for itself.
func resourceOfMaster(spec *proto.JobSpec) yarn.Resource {
	r := masterResource
	r.MemoryMB += int64(max(0, runtime.Count(spec)-masterFew) / masterTasksPerMB)
	return r
}

// heapOf is how much of its container's memory a process is to use before Go's
// collector does all it can (GOMEMLIMIT, package runtime): YARN ends the container
// of one that takes more than there is.
func heapOf(r yarn.Resource) string { return fmt.Sprintf("%dMiB", r.MemoryMB*9/10) }

// How often YARN starts an application master anew: so often within so long.
// YARN itself allows fewer by default (yarn.resourcemanager.am.max-attempts).
const (
	masterAttempts       = 10
	masterAttemptsWithin = 10 * time.Minute
)

// Submit checks the spec against the cluster, brings the binary and the inputs
// there and starts the job. exe is the binary. Where it fails, nothing of the
// job stays on the cluster. tell hears of what it waits for.
func (c *Cluster) Submit(ctx context.Context, spec *proto.JobSpec, exe string, tell Tell) (_ *Job, err error) {
	// What does not depend on each other is done at the same time: each is a few
	// round trips, and somebody waits.
	keep, err := keepJobs()
	if err != nil {
		return nil, err
	}
	var home store.Store
	var id yarn.ApplicationID
	var sum string
	g, checking := errgroup.WithContext(ctx)
	g.Go(func() (err error) { id, err = c.checkYARN(checking, spec); return err })
	g.Go(func() error { return c.checkCheckpoints(checking, spec, tell) })
	g.Go(func() (err error) { home, err = c.openHome(checking); return err })
	g.Go(func() (err error) { sum, err = digest(checking, exe); return err })
	if err := g.Wait(); err != nil {
		if home != nil {
			home.Close()
		}
		return nil, err
	}

	j := &Job{ID: id.String(), cluster: c, app: id, home: home, dir: path.Join(jobsDir, id.String())}
	defer func() {
		if err != nil {
			cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			_ = removeAll(cleaning, home, j.dir) // the error that led here is the one to tell
			_ = j.removeKeytab(cleaning)
			j.Close()
		}
	}()
	spec.User = c.user
	set, err := jobtls.New(j.ID)
	if err != nil {
		return nil, err
	}
	j.keys = &set.Client
	var binary, keytab yarn.LocalResource
	var archives []yarn.LocalResource
	var credentials *token.Credentials
	g, bringing := errgroup.WithContext(ctx)
	g.Go(func() error { return c.sweepKeytabs(bringing, home) })
	g.Go(func() error {
		j.Note = sweepJobs(bringing, home, keep, func(ctx context.Context, old *Job) error { return removeAll(ctx, home, old.dir) })
		return nil
	})
	if c.keytab != "" {
		g.Go(func() (err error) { keytab, err = j.bringKeytab(bringing); return err })
	}
	g.Go(func() (err error) { binary, err = provideBinary(bringing, home, exe, sum); return err })
	g.Go(func() (err error) { credentials, err = c.credentials(bringing, set, spec); return err })
	g.Go(func() (err error) {
		if archives, err = j.upload(bringing, spec, set); err != nil {
			return fmt.Errorf("bring the job's files to %s: %w", j.URI(), err)
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	resource := resourceOfMaster(spec)
	environment := map[string]string{proto.EnvJob: j.ID, proto.EnvJobDirectory: j.URI(), "GOMEMLIMIT": heapOf(resource)}
	master := []yarn.LocalResource{binary}
	if c.keytab != "" {
		master = append(master, keytab)
		environment[proto.EnvPrincipal], environment[proto.EnvKeytab] = c.principal, keytab.URI
	}
	submitting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = c.rm.Submit(submitting, yarn.Submission{
		ID: id, Name: spec.Name, Queue: spec.Queue, Master: resource,
		MaxAttempts: masterAttempts, AttemptsWithin: masterAttemptsWithin, KeepContainers: true,
		Launch: yarn.Launch{
			Resources:   master,
			Environment: environment,
			Credentials: credentials,
			ViewACL:     spec.ViewAcl, ModifyACL: spec.ModifyAcl,
		},
		Agents: append([]yarn.LocalResource{binary}, archives...),
	})
	if err != nil {
		c.forget(ctx, id)
		return nil, c.submitError(spec.Queue, err)
	}
	j.submitted = time.Now()
	return j, nil
}

// forget ends an application of which it is not known whether the RM has taken it.
func (c *Cluster) forget(ctx context.Context, id yarn.ApplicationID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = c.rm.Kill(ctx, id, "its submission failed") // most often it is not there
}

// credentials are what the AM's container gets: on a secure cluster with tokens
// for the file systems of the job, which the ResourceManager renews.
func (c *Cluster) credentials(ctx context.Context, set jobtls.Set, spec *proto.JobSpec) (*token.Credentials, error) {
	s, err := c.shared(ctx, spec)
	if err != nil {
		return nil, err
	}
	s.Secrets[proto.SecretMaster] = set.Master.Marshal()
	s.Secrets[proto.SecretAgent] = set.Agent.Marshal()
	return s, nil
}

// shared is what all containers get: tokens and the configuration.
func (c *Cluster) shared(ctx context.Context, spec *proto.JobSpec) (*token.Credentials, error) {
	packed, err := c.conf.Pack()
	if err != nil {
		return nil, err
	}
	s := token.New()
	if c.conf.Secure() {
		if s, err = c.tokens(ctx, spec); err != nil {
			return nil, err
		}
	}
	s.Secrets[proto.SecretConf] = packed
	return s, nil
}

func (c *Cluster) tokens(ctx context.Context, spec *proto.JobSpec) (*token.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	renewer, err := delegation.Renewer(ctx, c.conf)
	if err != nil {
		return nil, err
	}
	s, err := delegation.HDFS(ctx, c.conf, renewer, append(spec.CheckpointURIs(), c.home(c.user)))
	if err != nil {
		if refused := refusal("HDFS", err); refused != nil {
			err = refused
		}
		return nil, err
	}
	t, err := delegation.ResourceManager(ctx, c.conf, c.rm, renewer)
	if err != nil {
		return nil, rmError(err)
	}
	s.Tokens[t.Service] = t
	return s, nil
}

// provideBinary makes sure that the binary is on HDFS, under its digest, so that
// it is brought there once and nodes may cache it.
func provideBinary(ctx context.Context, home store.Store, exe, sum string) (yarn.LocalResource, error) {
	r, err := provide(ctx, home, path.Join("bin", sum, binaryName), exe, 0o700)
	if err != nil {
		return r, fmt.Errorf("bring the program %s to %s: %w", exe, home.URI(), err)
	}
	r.Name = binaryName
	return r, nil
}

// provideArchive does the same for an archive that nodes unpack: a job that brings what
// one before it has brought waits for neither copy.
func provideArchive(ctx context.Context, home store.Store, f *proto.FileSpec) (yarn.LocalResource, error) {
	r, err := provide(ctx, home, archiveName(f), f.Uri, fs.FileMode(f.Mode)&0o777)
	if err != nil {
		return r, fmt.Errorf("bring the archive %s to %s: %w", f.Uri, home.URI(), err)
	}
	r.Name, r.Archive = f.Name, true
	return r, nil
}

// archiveName is where an archive is, in a directory that is named by its digest. The
// suffix tells the NodeManager how to unpack it.
func archiveName(f *proto.FileSpec) string { return path.Join("archives", f.Sha256, path.Base(f.Uri)) }

// provide makes sure that a local file is on HDFS, under a name that its content
// determines.
func provide(ctx context.Context, home store.Store, name, file string, mode fs.FileMode) (yarn.LocalResource, error) {
	local, err := os.Stat(file)
	if err != nil {
		return yarn.LocalResource{}, err
	}
	info, there, err := findWhole(ctx, home, name, local.Size())
	if err == nil && !there {
		if err = bring(ctx, home, name, file, local.Size(), mode); err == nil {
			info, err = home.Stat(ctx, name)
		}
	}
	if err != nil {
		return yarn.LocalResource{}, fmt.Errorf("%s: %w", name, err)
	}
	return resourceOf(home, name, path.Base(name), info), nil
}

// findWhole tells whether a file is there, and whole.
func findWhole(ctx context.Context, home store.Store, name string, size int64) (store.Info, bool, error) {
	info, err := home.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return info, false, nil
	}
	return info, err == nil && info.Size == size, err
}

// bring puts a file in its place when it has its time already. If another client has
// meanwhile, that one stays: NodeManagers may be reading it.
func bring(ctx context.Context, home store.Store, name, file string, size int64, mode fs.FileMode) error {
	if err := store.MkdirAll(ctx, home, path.Dir(name), 0o700); err != nil {
		return err
	}
	beside := path.Join(path.Dir(name), rand.Text())
	if err := uploadFile(ctx, home, beside, file, mode); err != nil {
		return err
	}
	err := home.Chtimes(ctx, beside, sharedTime, sharedTime)
	there := false
	if err == nil {
		_, there, err = findWhole(ctx, home, name, size)
	}
	if err == nil && !there {
		err = home.Rename(ctx, beside, name)
	}
	if err != nil || there {
		err = errors.Join(err, home.Remove(ctx, beside))
	}
	return err
}

func resourceOf(home store.Store, name, as string, info store.Info) yarn.LocalResource {
	return yarn.LocalResource{
		Name: as, URI: home.URI() + "/" + name, Size: info.Size, Timestamp: info.ModTime.UnixMilli(),
		Visibility: yarn.Private,
	}
}

// upload fills the job's directory and returns the archives, which NodeManagers
// unpack. The spec that is stored names the files where they are on HDFS.
func (j *Job) upload(ctx context.Context, spec *proto.JobSpec, set jobtls.Set) ([]yarn.LocalResource, error) {
	if err := store.MkdirAll(ctx, j.home, jobsDir, 0o700); err != nil {
		return nil, err
	}
	if err := j.home.Mkdir(ctx, j.dir, 0o700); err != nil {
		return nil, err
	}
	stored := pb.Clone(spec).(*proto.JobSpec)
	names := make([]string, len(stored.Files))
	made := map[string]bool{}
	for i, f := range stored.Files {
		if f.Archive {
			continue
		}
		names[i] = path.Join(j.dir, "files", f.Name)
		if dir := path.Dir(names[i]); !made[dir] {
			if err := store.MkdirAll(ctx, j.home, dir, 0o700); err != nil {
				return nil, err
			}
			made[dir] = true
		}
	}
	archives := make([]yarn.LocalResource, len(stored.Files))
	g, uploading := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, f := range spec.Files {
		at := stored.Files[i]
		if f.Archive {
			names[i] = archiveName(f)
			at.Sha256 = ""
		}
		at.Uri = j.home.URI() + "/" + names[i]
		g.Go(func() (err error) {
			if f.Archive {
				archives[i], err = provideArchive(uploading, j.home, f)
				return err
			}
			return uploadFile(uploading, j.home, names[i], f.Uri, fs.FileMode(f.Mode)&0o777)
		})
	}
	g.Go(func() error {
		return store.WriteFile(uploading, j.home, path.Join(j.dir, proto.KeysFile), set.Client.Marshal(), 0o600)
	})
	g.Go(func() error { return j.writeSpec(uploading, stored) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(archives, func(a yarn.LocalResource) bool { return a.Name == "" }), nil
}

func (j *Job) writeSpec(ctx context.Context, spec *proto.JobSpec) error {
	text, err := protojson.MarshalOptions{Multiline: true}.Marshal(spec)
	if err != nil {
		return fmt.Errorf("write the job's spec: %w", err)
	}
	return store.WriteFile(ctx, j.home, path.Join(j.dir, proto.SpecFile), text, 0o600)
}

func uploadFile(ctx context.Context, s store.Store, name, local string, mode fs.FileMode) error {
	f, err := os.Open(local)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := s.Create(ctx, name, mode)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(onlyWriter{w}, reader{ctx, f}, make([]byte, 1<<20)); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// onlyWriter keeps io.Copy to its buffer.
type onlyWriter struct{ io.Writer }

// removeAll removes a directory and all in it.
func removeAll(ctx context.Context, s store.Store, name string) error {
	list, err := s.List(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		child := path.Join(name, e.Name)
		if e.IsDir() {
			err = removeAll(ctx, s, child)
		} else {
			err = s.Remove(ctx, child)
		}
		if err != nil {
			return err
		}
	}
	return s.Remove(ctx, name)
}
