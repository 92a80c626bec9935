package testcluster

import "strconv"

// OtherQueue is the second queue of TwoQueues.
const OtherQueue = "other"

// TwoQueues is the configuration of a cluster of which the queue default has a
// share, in percent, and OtherQueue the rest. Each may use what the other leaves
// to it; who wants its share gets it, and the scheduler takes containers back 10 s
// after it said so.
func TwoQueues(share int) map[string]string {
	const capacity = "yarn.scheduler.capacity.root."
	const preemption = "yarn.resourcemanager.monitor.capacity.preemption."
	return map[string]string{
		capacity + "queues":                             "default," + OtherQueue,
		capacity + "default.capacity":                   strconv.Itoa(share),
		capacity + "default.user-limit-factor":          "3",
		capacity + OtherQueue + ".capacity":             strconv.Itoa(100 - share),
		"yarn.resourcemanager.scheduler.monitor.enable": "true",
		preemption + "monitoring_interval":              "500",
		preemption + "max_wait_before_kill":             "10000",
		preemption + "total_preemption_per_round":       "1.0",
		preemption + "natural_termination_factor":       "1.0",
		preemption + "max_ignored_over_capacity":        "0.0",
	}
}
