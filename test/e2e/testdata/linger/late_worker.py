"""Worker 0 is lost near the end, and comes back when worker 1 has done its work. An
operation of its graph stands on worker 1, so its session needs that worker's server."""
import argparse, os, signal, sys, time
import tensorflow as tf

p = argparse.ArgumentParser()
for name in ("--job_name", "--ps_hosts", "--worker_hosts"):
    p.add_argument(name)
p.add_argument("--task_index", type=int)
args = p.parse_args()
cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
if args.job_name == "ps":
    server.join()
chief = args.task_index == 0
done = os.path.join("train_logs", "worker-1-is-done")
steps, attempt = (60 if chief else 40), int(os.environ["HOLDFAST_ATTEMPT"])
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % args.task_index)):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
if chief:
    with tf.device("/job:worker/task:1"):
        elsewhere = tf.random_uniform([])
else:
    elsewhere = tf.constant(1.0)
if chief and attempt > 0:
    while not os.path.exists(done):
        time.sleep(0.1)
    print("worker 1 is done", flush=True)
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=chief, checkpoint_dir="train_logs" if chief else None, save_checkpoint_steps=10) as session:
    for i in range(steps):
        n, _ = session.run([train, elsewhere])
        print("step %d" % n, flush=True)
        if chief and attempt == 0 and i == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
if not chief:
    with open(done, "w"):
        pass
print("the end of worker %d" % args.task_index)  # in a buffer
