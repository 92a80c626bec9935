package spec

import (
	"math"
	"strings"
	"time"

	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
	"holdfast/runtime"
)

// KnownRoles are the roles that have flags without being named by --role.
var KnownRoles = []string{"ps", "worker", "chief", "head", "lighthouse", "replica", "evaluator", tensorboard}

// tensorboardPath has TensorBoard ask for all of its data by GET (its flag inColab), since YARN's
// proxy passes on no POST.
const tensorboardPath = "/?tensorboardColab=true"

// maxCount bounds the numbers of tasks, restarts and the like.
const maxCount = 10000

// frameworkNames lists the frameworks for --help.
var frameworkNames = alternatives(runtime.FrameworkNames())

func alternatives(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// The headings of options in --help and docs/options.md, in order.
const (
	groupRoles   = "Roles"
	groupProgram = "Program and files"
	groupLosses  = "Losses and time limits"
	groupCluster = "Cluster and identity"
	groupImage   = "Container images"
)

// jobOptions are the options of a job, in the order of YAML output.
var jobOptions = []option[Draft]{
	{
		name: "name", group: groupCluster, help: "the job's name (default: its script's)",
		doc:  "the job's name. Default: that of its script or program",
		kind: func(d *Draft) kind { return text(&d.Job.Name, "NAME") },
	}, {
		name: "queue", group: groupCluster, clusterOnly: true, help: "YARN's queue (default \"default\")",
		doc:  "YARN's queue; its rules may put the job into [another](clusters.md#queues). Default: `default`",
		kind: func(d *Draft) kind { return text(&d.Job.Queue, "QUEUE") },
	}, {
		name: "node-label", group: groupCluster, clusterOnly: true, help: "the nodes' label (YARN's partition) for all containers",
		doc:  "the label of the nodes (YARN's partition) on which the job runs, its application master included: [clusters.md](clusters.md#node-labels). Default: that of the queue",
		kind: func(d *Draft) kind { return nodeLabel(&d.Job.NodeLabel) },
	}, {
		name: "avoid-node", group: groupCluster, clusterOnly: true, help: "hosts on which no task may be",
		doc:  "hosts, as YARN names them, on which no task may be; the application master may",
		kind: func(d *Draft) kind { return words(&d.Job.AvoidNodes, "HOST,...", nothing, nil) },
	}, {
		name: "tags", group: groupCluster, clusterOnly: true, help: "YARN's tags, to find the job by",
		doc:  "words by which YARN's users find the job (`yarn application -list -appTags`), in lower case",
		kind: func(d *Draft) kind { return words(&d.Job.Tags, "TAG,...", strings.ToLower, checkTag) },
	}, {
		name: "priority", group: groupCluster, clusterOnly: true, help: "in its queue, the greater goes first",
		doc:  "the job's priority in its queue: the greater goes first. The scheduler lowers it to what the queue allows the user. Default: that of the queue",
		kind: func(d *Draft) kind { return number(&d.Job.Priority, 0, math.MaxInt32) },
	}, {
		name: "am-memory", group: groupCluster, clusterOnly: true, help: "memory of the application master (default 256m)",
		doc:  "memory of the application master's container, 128m at least. Default: 256m, and with more than 1000 tasks 1m for every 12 more",
		kind: func(d *Draft) kind { return megabytes(&d.Job.AmMemoryMb) },
	}, {
		name: "am-vcores", group: groupCluster, clusterOnly: true, help: "virtual cores of the application master (default 1)",
		doc:  "virtual cores of the application master's container. Default: 1",
		kind: func(d *Draft) kind { return number(&d.Job.AmVcores, 0, maxCount) },
	}, {
		name: "lifetime", group: groupCluster, clusterOnly: true, help: "YARN ends the job after so long",
		doc:  "how long the job may take, from its submission: then YARN kills it, in a minute or so. A queue may set a limit of its own, which holds for longer ones. Default: no limit of its own",
		kind: func(d *Draft) kind { return milliseconds(&d.Job.LifetimeMs, time.Second, 0) },
	}, {
		name: "reservation", group: groupCluster, clusterOnly: true, help: "YARN's reservation, as reservation_1700000000000_0001",
		doc:  "the id of a reservation of YARN's whose resources the job uses, as `reservation_1700000000000_0001`",
		kind: func(d *Draft) kind { return reservation(&d.Job.Reservation) },
	}, {
		name: "log-include", group: groupCluster, clusterOnly: true, help: "log files that YARN collects (default: all)",
		doc:  "which files of containers' log directories YARN collects when the job has ended: a regular expression of Java's for their names. Default: all. What tasks print is kept in the job's directory, too, whatever stands here",
		kind: func(d *Draft) kind { return text(&d.Job.LogInclude, "REGEXP") },
	}, {
		name: "log-exclude", group: groupCluster, clusterOnly: true, help: "log files that YARN does not collect",
		doc:  "which of them it does not collect",
		kind: func(d *Draft) kind { return text(&d.Job.LogExclude, "REGEXP") },
	}, {
		name: "framework", group: groupProgram, help: frameworkNames,
		doc:  frameworkNames + ". Default: `tensorflow` if there is a `ps` or `--tf1`; else what the command runs (`torchrun`, `accelerate`, `deepspeed`, `lightgbm`) or its script, or the module of `python -m`, imports, which is reported; else `none`. What it brings: [frameworks.md](frameworks.md)",
		kind: func(d *Draft) kind { return choice(&d.Job.Framework, runtime.FrameworkNames()) },
	}, {
		name: "local", group: groupCluster, help: "run on this machine, without Hadoop",
		kind: func(d *Draft) kind { return boolean(&d.Job.Local) },
	}, {
		name: "role", key: "roles", group: groupRoles, help: "number of tasks of a role with any name",
		doc:  "how many tasks a role of any name has; it has the flags below, too",
		kind: roles,
	}, {
		key:  "command",
		kind: func(d *Draft) kind { return command(&d.Job.Command) },
	}, {
		name: "env", group: groupProgram, help: "for the tasks' environment; may be repeated",
		doc:  "environment; `{...}` as in the command. May be repeated",
		kind: func(d *Draft) kind { return variables(&d.Job.Env) },
	}, {
		name: "checkpoint", key: "checkpoints", group: groupProgram, help: "keep the script's directory PATH (. is all of its working directory) at URI; may be repeated",
		doc: "PATH as the script spells it, relative to its working directory or absolute; `.` is the [working directory itself](checkpoints.md#the-working-directory-itself). URI `hdfs://...` or `viewfs://...`; with `--local` a directory; on a cluster also `file:///...` for one that all nodes share. " +
			"May be repeated. After it `,format=...`, `,marker=NAME`, `,quiet=30s`, `,share=true`: [checkpoints.md](checkpoints.md)",
		kind: checkpoints,
	}, {
		name: "files", group: groupProgram, help: "files and directories for the working directory",
		doc:  "files and directories for the working directory of every task; `PATH#NAME` to rename",
		kind: func(d *Draft) kind { return inputs(d, false) },
	}, {
		name: "archives", group: groupProgram, help: "archives, unpacked there into directories NAME",
		doc:  "`.tar.gz`, `.tgz`, `.tar` or `.zip`, unpacked into a directory NAME: [how to make one of your Python](#a-python-for-the-nodes). Brought to HDFS once for all jobs (`.holdfast/archives`), and kept by the nodes",
		kind: func(d *Draft) kind { return inputs(d, true) },
	}, {
		name: "restarts", group: groupLosses, def: "3", help: "how often one task may fail by its own fault",
		doc:  "how often one task may fail by its own fault within an hour",
		kind: func(d *Draft) kind { return number(&d.Job.Restarts, 0, maxCount) },
	}, {
		name: "spares", group: groupLosses, help: "idle containers for tasks that lose theirs",
		doc:  "idle containers, as large as the largest role, into which tasks move that lose theirs",
		kind: func(d *Draft) kind { return number(&d.Job.Spares, 0, maxCount) },
	}, {
		name: "start-limit", group: groupLosses, help: "how long all tasks may take to start together (default: no limit)",
		doc:  "the job fails if its tasks cannot start together for the first time by then, and says what was scarce. The time in which nodes fetch and unpack its files does not count. Default: it waits",
		kind: func(d *Draft) kind { return milliseconds(&d.Job.StartLimitMs, time.Second, 0) },
	}, {
		name: "restart-stalled", group: groupLosses, def: "10m", help: "act after so long without a step; 0: never",
		doc:  "how long a job whose tasks all run may make no step before something is done: [below](#stalls). 0: it is only reported",
		kind: func(d *Draft) kind { return milliseconds(&d.Job.RestartStalledMs, time.Second, 0) },
	}, {
		name: "straggler-time", group: groupLosses, def: "2m", help: "name a task that is slower than the others for so long; 0: never",
		doc:  "for how long a task must be slower than the others of its role to be reported as a [straggler](stragglers.md). 0: stragglers are not looked for",
		kind: func(d *Draft) kind { return milliseconds(&d.Job.StragglerTimeMs, 10*time.Second, 24*time.Hour) },
	}, {
		name: "straggler-factor", group: groupLosses, def: "2", help: "how many times slower than the others",
		doc:  "how many times slower than the median of its role it must be",
		kind: func(d *Draft) kind { return factor(&d.Job.StragglerFactor, 1.2, 100) },
	}, {
		name: "straggler-moves", group: groupLosses, help: "how often one straggler is moved to another node",
		doc:  "how often one task is [moved to another node](stragglers.md#moves) because it is a straggler. Default: 0, it is only reported",
		kind: func(d *Draft) kind { return number(&d.Job.StragglerMoves, 0, maxCount) },
	}, {
		name: "stop-grace", group: groupLosses, def: "5s", help: "from SIGTERM to SIGKILL for a task; at most 10m",
		doc: "what a task gets between SIGTERM and SIGKILL: [below](#stopping-a-task). 10m at most; 0: SIGKILL at once",
		kind: func(d *Draft) kind {
			if d.Job.StopGraceMs == nil {
				d.Job.StopGraceMs = new(int64)
			}
			return milliseconds(d.Job.StopGraceMs, 0, 10*time.Minute)
		},
	}, {
		name: "elastic-wait", group: groupLosses, help: "how long to wait for tasks that the job could do without (default 30s; of lost ones, with --spares, those in a spare)",
		doc: "how long tasks that the job [can do without](elastic.md) are waited for when it starts, and when they are lost. One whose container the scheduler took, or for which the queue has no room, is not waited for. Default: 30s; with `--spares` a task that is lost is waited for only where it has a container that is being prepared for it, as a spare one is",
		kind: func(d *Draft) kind {
			return optional(duration(func() time.Duration { return time.Duration(d.Job.GetElasticWaitMs()) * time.Millisecond },
				func(wait time.Duration) { d.Job.ElasticWaitMs = new(wait.Milliseconds()) }, 0, time.Hour),
				func() bool { return d.Job.ElasticWaitMs == nil })
		},
	}, {
		name: "elastic-grow", group: groupLosses, help: "when tasks join that were missing: checkpoint, or a DURATION",
		doc: "when tasks join that the job [was without](elastic.md): `checkpoint`, as soon as the next one is complete, or so long after it began to work without them. At most three times in five minutes. Default: `checkpoint`",
		kind: func(d *Draft) kind {
			return optional(growth(&d.Job.ElasticGrowMs), func() bool { return d.Job.ElasticGrowMs == 0 })
		},
	}, {
		name: "tf1", group: groupProgram, help: "run an unedited TensorFlow 1 script on TensorFlow 2",
		doc:  "run a script written for TensorFlow 1 on TensorFlow 2, unedited",
		kind: func(d *Draft) kind { return boolean(&d.Job.Tf1) },
	}, {
		name: "progress", group: groupProgram, help: "finds the step in a line of output, in its one group",
		doc:  "finds the step in a line of output, in its one group (RE2). Default: [what usual programs print](frameworks.md#steps)",
		kind: func(d *Draft) kind { return text(&d.Job.Progress, "REGEXP") },
	}, {
		name: "total-steps", group: groupProgram, help: "how many steps the program makes, for the time that is left",
		doc:  "how many steps the program makes in all, from which the time that is left is known. Default: [what the program says](frameworks.md#steps)",
		kind: func(d *Draft) kind { return number(&d.Job.TotalSteps, 0, math.MaxInt32) },
	}, {
		name: "keep-interpreter-waits", group: groupLosses, help: "leave TensorFlow's 30 s between readiness checks",
		doc:  "leave TensorFlow's 30 s wait between readiness checks as it is; it is lowered to 1 s otherwise",
		kind: func(d *Draft) kind { return boolean(&d.Job.KeepInterpreterWaits) },
	}, {
		name: "no-warm", group: groupLosses, help: "keep no interpreters that have imported the framework",
		doc:  "keep no warm interpreters: [frameworks.md](frameworks.md#warm-interpreters)",
		kind: func(d *Draft) kind { return boolean(&d.Job.Cold) },
	}, {
		name: "image", group: groupImage, clusterOnly: true, help: "container image for tasks and application master",
		doc:  "the container image in which YARN runs the tasks and the application master: [clusters.md](clusters.md#images). Default: none, they run on the nodes themselves",
		kind: func(d *Draft) kind { return image(&d.Job.Image) },
	}, {
		name: "image-runtime", group: groupImage, clusterOnly: true, help: alternatives(yarn.Runtimes) + " (default " + yarn.Runtimes[0] + ")",
		doc:  "the NodeManagers' runtime for images: " + alternatives(yarn.Runtimes) + ". Default: `" + yarn.Runtimes[0] + "`",
		kind: func(d *Draft) kind { return oneOf(&d.Job.ImageRuntime, yarn.Runtimes) },
	}, {
		name: "image-mounts", group: groupImage, clusterOnly: true, help: "what of the node is mounted into images",
		doc:  "what of the node is mounted into images: its path, that in the image, and `ro` or `rw`. `ro` where it is left out. Nodes have lists of what they allow",
		kind: func(d *Draft) kind { return mounts(&d.Job.ImageMounts) },
	}, {
		name: "image-network", group: groupImage, clusterOnly: true, help: "Docker's network for images",
		doc:  "Docker's network for images. Default: that of the nodes, most often `host`. Tasks are reached at their node's address, so others will seldom do. Only with `docker`",
		kind: func(d *Draft) kind { return text(&d.Job.ImageNetwork, "NAME") },
	}, {
		name: "image-privileged", group: groupImage, clusterOnly: true, help: "all devices and capabilities for images",
		doc:  "privileged containers, with all devices and capabilities, where the nodes allow the user these. It is one way to the mounts of checkpoints: [clusters.md](clusters.md#images)",
		kind: func(d *Draft) kind { return boolean(&d.Job.ImagePrivileged) },
	}, {
		name: "principal", group: groupCluster, clusterOnly: true, help: "act as this Kerberos principal, with --keytab",
		doc:  "act as this Kerberos principal, and go on for longer than tokens last: [clusters.md](clusters.md#with-kerberos)",
		kind: func(d *Draft) kind { return text(&d.Principal, "PRINCIPAL") },
	}, {
		name: "keytab", group: groupCluster, clusterOnly: true, help: "the principal's key (default: the tickets of kinit)",
		doc:  "the file that has the key of `--principal`. Default: the tickets of `kinit`",
		kind: func(d *Draft) kind { return file(&d.Keytab, d) },
	}, {
		name: "view-acl", group: groupCluster, clusterOnly: true, help: "who else may see the job, as in \"amy,bob staff\"; *: all",
		doc:  "who else may see the job, `\"USER,USER GROUP,GROUP\"`, or `*` for everybody: [security.md](security.md)",
		kind: func(d *Draft) kind { return accessList(&d.Job.ViewAcl) },
	}, {
		name: "modify-acl", group: groupCluster, clusterOnly: true, help: "who else may end the job, and change its checkpoints on its page",
		doc:  "who else may end the job, and change its checkpoints on its [page](security.md#the-tracking-page), in the same form",
		kind: func(d *Draft) kind { return accessList(&d.Job.ModifyAcl) },
	}, {
		name: "history-url", group: groupCluster, clusterOnly: true, help: "where YARN's link leads after the end: URL/ID",
		doc:  "where the ResourceManager's link to the job leads when it has ended: to the page URL/ID, as `https://host/jobs/application_1_0001`, of a server that shows ended jobs. Default: the ResourceManager's own page of the application, which has the reason",
		kind: func(d *Draft) kind { return webAddress(&d.Job.HistoryUrl) },
	}, {
		name: "notify", group: groupCluster, help: "where to post that the job failed, stalled, has a straggler, recovered, ended",
		doc:  "where the application master posts that the job has failed, stalled, recovered or ended, or has a straggler: [below](#notifications). `http://` or `https://`. A URL that holds a token belongs in the YAML file, since others see command lines",
		kind: func(d *Draft) kind { return webhook(&d.Job.NotifyUrl) },
	},
}

// roleOptions are the options of every role. Their flags are prefixed with the role's
// name.
var roleOptions = []option[proto.RoleSpec]{
	{
		name: "count", group: groupRoles, help: "number of tasks of a role; MIN..MAX: it may do with fewer",
		doc: "how many tasks the role has; `4..16`: up to 16, and the job [goes on with as few as 4](elastic.md). In a YAML file also `{min: 4, max: 16, multiple: 2}`",
		kind: func(r *proto.RoleSpec) kind {
			return optional(counts(r), func() bool { return r.Count == unset })
		},
	}, {
		name: "min", group: groupRoles, help: "do with so few tasks if need be (default: all)",
		doc:  "the same as MIN of the number of tasks. Default: all. Not for `ps`, `xgboost` and `lightgbm`",
		kind: func(r *proto.RoleSpec) kind { return number(&r.Min, 0, maxCount) },
	}, {
		name: "multiple", group: groupRoles, help: "work with multiples of so many tasks only",
		doc:  "where the job may do with fewer tasks: their number is a multiple of this. Default: any number",
		kind: func(r *proto.RoleSpec) kind { return number(&r.Multiple, 0, maxCount) },
	}, {
		name: "memory", group: groupRoles, def: "2g", defOf: map[string]string{"ps": "1g"}, help: "memory of a task",
		kind: func(r *proto.RoleSpec) kind { return megabytes(&r.MemoryMb) },
	}, {
		name: "memory-max", group: groupRoles, help: "how far memory grows for a task that ran out of it",
		doc:  "a task that ran out of memory gets half as much again, up to this. Default: it does not grow",
		kind: func(r *proto.RoleSpec) kind { return megabytes(&r.MemoryMaxMb) },
	}, {
		name: "vcores", group: groupRoles, def: "1", help: "virtual cores of a task",
		kind: func(r *proto.RoleSpec) kind { return number(&r.Vcores, 1, maxCount) },
	}, {
		name: "gpus", group: groupRoles, help: "GPUs of a task",
		doc:  "GPUs of a task, which no other task of its node uses: [frameworks.md](frameworks.md#gpus)",
		kind: func(r *proto.RoleSpec) kind { return number(&r.Gpus, 0, maxCount) },
	}, {
		name: "resource", group: groupRoles, clusterOnly: true, help: "another resource of a task, as yarn.io/fpga=1; may be repeated",
		doc:  "how much a task gets of another of YARN's resource types, as `yarn.io/fpga=1` or `example.com/disk=100G`: [clusters.md](clusters.md#resources). May be repeated",
		kind: func(r *proto.RoleSpec) kind { return amounts(&r.Resources) },
	}, {
		name: "node-label", group: groupRoles, clusterOnly: true, help: "the nodes' label for a role",
		doc:  "the label of the nodes for the role. Default: that of the job",
		kind: func(r *proto.RoleSpec) kind { return nodeLabel(&r.NodeLabel) },
	}, {
		name: "spread", group: groupRoles, clusterOnly: true, help: "put each task of a role on a node of its own",
		doc:  "no two tasks of the role are on one node, so that no node takes several with it: [clusters.md](clusters.md#nodes)",
		kind: func(r *proto.RoleSpec) kind { return boolean(&r.Spread) },
	}, {
		name: "pack", group: groupRoles, clusterOnly: true, help: "put a role's tasks on one node, or else one rack",
		doc:  "the role's tasks go to one node, or else one rack, if there is room, as for NCCL: [clusters.md](clusters.md#nodes)",
		kind: func(r *proto.RoleSpec) kind { return boolean(&r.Pack) },
	}, {
		name: "anti-affinity", group: groupRoles, clusterOnly: true, help: "roles with whose tasks its own share no node",
		doc:  "no task of the role is on a node with a task of these roles: [clusters.md](clusters.md#nodes)",
		kind: func(r *proto.RoleSpec) kind { return words(&r.AntiAffinity, "ROLE,...", nothing, nil) },
	}, {
		name: "processes", group: groupRoles, help: "processes of a task (pytorch: default one a GPU)",
		doc:  "how many processes run the program in each task: [frameworks.md](frameworks.md#several-processes-a-task). Default: with `pytorch`, `torchft`, `horovod` and `xgboost` one for each GPU, else 1",
		kind: func(r *proto.RoleSpec) kind { return number(&r.Processes, 0, maxCount) },
	}, {
		name: "finish", group: groupRoles, help: "how long evaluators may outlast the job (default 5m)",
		doc: "for a role that decides nothing, as `evaluator` and `tensorboard`: how long its tasks may go on once the job has succeeded, to look at the last checkpoint and export it. Default: 5m for `evaluator`, else 0",
		kind: func(r *proto.RoleSpec) kind {
			return optional(milliseconds(&r.FinishMs, 0, 0), func() bool { return r.FinishMs == unset })
		},
	}, {
		name: "image", group: groupRoles, clusterOnly: true, help: "container image for the role's tasks",
		doc:  "the container image of the role's tasks. Default: `--image`",
		kind: func(r *proto.RoleSpec) kind { return image(&r.Image) },
	}, {
		name: "web", group: groupRoles, defOf: map[string]string{tensorboard: tensorboardPath}, help: "path of a page that a task serves on {port}",
		doc:  "the path of a page that each task of the role serves by HTTP on `{port}`, as `/`: [the job's page](page.md#a-job) passes requests on to it, `status` and `describe` have its address. Without it there is none",
		kind: func(r *proto.RoleSpec) kind { return webPath(&r.WebPath) },
	}, {
		name: "command", group: groupRoles, help: "command of the role, for sh (default: the job's)",
		doc:  "the role's own command, a text for `sh`; in YAML a list, too: [below](#tensorboard). Default: the job's",
		kind: func(r *proto.RoleSpec) kind { return command(&r.Command) },
	},
}

// checkpointOptions are the options of a checkpoint directory. Those with a name can
// follow the URI in --checkpoint.
var checkpointOptions = []option[proto.CheckpointSpec]{
	{
		key:  "uri",
		kind: func(c *proto.CheckpointSpec) kind { return text(&c.Uri, "URI") },
	}, {
		name: "format",
		kind: func(c *proto.CheckpointSpec) kind { return text(&c.Format, "NAME") },
	}, {
		name: "marker",
		kind: func(c *proto.CheckpointSpec) kind { return text(&c.Marker, "NAME") },
	}, {
		name: "quiet",
		kind: func(c *proto.CheckpointSpec) kind { return seconds(&c.QuietSeconds) },
	}, {
		name: "share",
		kind: func(c *proto.CheckpointSpec) kind { return boolean(&c.Share) },
	},
}
