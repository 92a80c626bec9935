package faults

import (
	"slices"
	"strings"

	hadoop "holdfast/test/testcluster/processes"
)

// containers are the job's; the cluster may run other jobs beside it.
func (j *job) containers() ([]hadoop.Container, error) {
	all, err := j.Cluster.Containers()
	own := strings.TrimPrefix(j.id, "application") + "_" // container_e17_CLUSTER_APPLICATION_ATTEMPT_NUMBER, e17 only after a restart
	return slices.DeleteFunc(all, func(c hadoop.Container) bool { return !strings.Contains(c.ID, own) }), err
}
