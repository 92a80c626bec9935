// Package client holds what the commands of yarn-submit have in common: errors
// with the exit code that each stands for, and suggestions for words that were
// mistyped. The work is done in the packages below it:
//
//	spec         what a user wants: options, YAML, validation, the job's spec
//	cluster      the Hadoop cluster that HADOOP_CONF_DIR describes
//	submit       starts a job from its spec, on YARN or on this machine
//	jobs         finds, shows, follows and ends jobs
//	checkpoints  finds and describes checkpoint directories
//	terminal     output that cannot steer the terminal it is written to
//	localfile    reads local files for as long as a context lives
//
// # Exit codes
//
// ExitCode maps errors to what the commands exit with: 0 done, 1 the job failed
// or the command could not do its work, 2 usage, 3 the cluster or HDFS cannot be
// reached, 4 not permitted, 130 interrupted.
package client
