// Package runtime knows what jobs and tasks need by their framework: the command line
// and the environment of a task, what the loss of a task means for the others, when
// the job is complete, when its checkpoints are, and what a failed task's last
// words mean. It asks the framework (package framework), of which package frameworks
// has the list. All of it is pure but for WriteShim.
//
// # Placeholders
//
// In the command and in the values of the user's environment these are
// replaced for each task; anything else in braces is left alone, and so is
// whatever follows a dollar sign, which belongs to a shell:
//
//	{role} {index} {task}   the task: worker, 1, worker-1
//	{attempt}               how often the task was started before
//	{port}                  the port on which it is to listen
//	{port2} {port3}         further ports, free on its node, which its peers are not told
//	{host}                  the address or name by which peers reach its node
//	{ps_hosts}              all tasks of the role ps: ps-0:20000,ps-1:20001;
//	                        likewise for any other role of the job
//	{cluster_json}          all tasks that are members of the framework's cluster:
//	                        {"ps":["ps-0:20000","ps-1:20001"],"worker":[...]}
//	{rank} {world_size}     its number among those, and how many they are
//	{local_rank} {local_world_size}
//	                        its number among the processes of its task, and how many they are
//	{node_rank}             the number of its container among theirs
//	{master_addr}           the first of them
//	{master_port}           and its port
//	{machines}              with lightgbm, its parameter of that name
//
// # Environment
//
// Every task finds these, whatever the framework:
//
//	HOLDFAST_FRAMEWORK      one of FrameworkNames
//	HOLDFAST_TASK           worker-1
//	HOLDFAST_ROLE           worker
//	HOLDFAST_INDEX          1
//	HOLDFAST_PORT           the port on which it is to listen
//	HOLDFAST_HOST           the address or name by which peers reach its node
//	HOLDFAST_<ROLE>_HOSTS   as {ROLE_hosts}; the role in capitals, - as _
//	HOLDFAST_JOB            the job
//	HOLDFAST_ATTEMPT        how often the task was started before
//	HOLDFAST_GENERATION     how often all tasks were started again together
//	HOLDFAST_LOCAL_RANK     its number among the processes of its task
//	HOLDFAST_WORLD_MAX      how many processes run the program where no task is absent,
//	                        whoever starts them
//	HOLDFAST_WORLD_CHANGED  1: other tasks are there than in the generation before; else
//	                        it is not set
//	HOLDFAST_MODEL_KEPT     1: what the services hold has outlived the loss of the
//	                        attempt before, and is of one piece; else it is not set
//
// The last is added by the agent. The user's own environment wins over what a framework gets, and loses against
// HOLDFAST_*, but for the settings of the shim (see shim.go).
package runtime
