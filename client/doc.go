// Package client is what yarn-submit does for its user: it turns flags and
// YAML into a job's spec, submits it, follows it, and finds, shows and ends jobs.
//
// # Spec
//
// A Draft is what a user wrote, from a YAML file (ReadDraft) and from flags
// (Flags.Apply), the latter over the former. Draft.Spec checks it and makes the
// proto.JobSpec. Nothing is asked of a cluster for that.
//
// # Where a job is
//
// A job has a directory: on HDFS .holdfast/jobs/ID in the home of the user who
// submitted it, for a local job ~/.holdfast/jobs/ID (HOLDFAST_HOME stands for
// ~/.holdfast). In it are the spec, the keys with which the client calls the
// application master, that master's address, the job's last known state and its
// logs: package proto names the files. Only its owner may read it. What is known
// of a job comes from its master while that answers, and from the directory
// (and, on a cluster, the ResourceManager) otherwise.
//
// The binary is at .holdfast/bin/SHA256/yarn-submit, once for all jobs, and so are
// archives, at .holdfast/archives/SHA256/NAME. Archives stay there: remove those that no
// job uses any longer.
//
// # Exit codes
//
// ExitCode maps errors to what the commands exit with: 0 done, 1 the job failed
// or the command could not do its work, 2 usage, 3 the cluster or HDFS cannot be
// reached, 4 not permitted, 130 interrupted.
//
// # Goroutines
//
// Functions here return after the goroutines that they have started. The
// exception is Local's child, the application master of a local job, which is a
// process of its own session and outlives the client on purpose; Job.process
// waits for it as long as the client lives.
package client
