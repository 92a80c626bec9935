package runtime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/runtime"
	"holdfast/test/bound"
)

// TestExplain reads last lines as programs left them: the files in
// testdata/tails are from TensorFlow 2.21.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		file   string
		lost   bool
		advice string
	}{
		{"supervisor-chief-loses-ps", true, ""},
		{"supervisor-worker-loses-ps", true, ""},
		{"supervisor-sharded-private-directories", false, "--checkpoint"},
		{"monitored-session-private-directories", false, "--checkpoint"},
		{"port-taken", false, "{port}"},
		{"tf1-placeholder", false, "--tf1"},
		{"tf1-server", false, "--tf1"},
		{"module-missing", false, "--archives"},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "tails", c.file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		v := runtime.Explain(strings.Split(strings.TrimRight(string(b), "\n"), "\n"))
		if v.PeerLost != c.lost || (c.advice == "") != (v.Advice == "") || !strings.Contains(v.Advice, c.advice) {
			t.Errorf("%s: %+v, want lost %v and advice about %q", c.file, v, c.lost, c.advice)
		}
		// It may be another program's, or another rank of the job with a wrong number.
		if c.file == "port-taken" && (!strings.Contains(v.Advice, "another program") || !strings.Contains(v.Advice, "the same rank")) {
			t.Errorf("%s: of what may have the port it says %q", c.file, v.Advice)
		}
	}
}

// What PyTorch and TensorFlow say on a node without GPUs, on which they then work.
const (
	noDriver = "/opt/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: Found no NVIDIA driver on your system. (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)\n  return torch._C._cuda_getDeviceCount() > 0"
	noDevice = "E0000 00:00:1795263778.309960   31489 cuda_driver.cc:265] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
)

func TestExplainLines(t *testing.T) {
	for _, c := range []struct {
		name   string
		tail   string
		lost   bool
		advice string
	}{
		{"nothing", "", false, ""},
		{"a plain failure", "Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: shapes do not match", false, ""},
		{"aborted", "tensorflow.python.framework.errors_impl.AbortedError: Graph handle is not found: 0000000000000003.", true, ""},
		{"another rank of Horovod failed", "RuntimeError: Horovod has been shut down.\n\nDuring handling of the above exception, another exception occurred:\n\nhorovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished execution.", true, ""},
		{"the same, in an operation", "horovod.common.exceptions.HorovodInternalError: [/tmp/horovod/third_party/gloo/gloo/transport/tcp/pair.cc:589] Connection closed by peer [127.0.0.1]:5821", true, ""},
		{"a fault of all ranks of Horovod", "horovod.common.exceptions.HorovodInternalError: Mismatched allreduce tensor shapes: One rank sent a tensor with shape [1], another [2].", false, ""},
		{"an own fault after an old complaint",
			"INFO: UnavailableError: recovering\nrecvmsg:Connection reset by peer\nTraceback (most recent call last):\nKeyError: 'x'", false, ""},
		{"a message of many lines", "tensorflow.python.framework.errors_impl.InternalError: 2 root error(s) found.\n  (0) Internal: x\n  (1) UNAVAILABLE: Socket closed\n", true, ""},
		{"a peer's mount went with its agent", "tensorflow.python.framework.errors_impl.FailedPreconditionError: ./train_logs/model.ckpt-5_temp: Transport endpoint is not connected", true, ""},
		{"a peer's mount went in the middle of a save", "tensorflow.python.framework.errors_impl.FailedPreconditionError: Graph execution error:\n\nFrom /job:ps/replica:0/task:1:\n./train_logs/model.ckpt-164_temp/part-00001-of-00002.data-00000-of-00001.tempstate57; Transport endpoint is not connected\n\t [[{{node save/SaveV2_1}}]]", true, ""},
		{"a peer's mount went as it was asked", "tensorflow.python.framework.errors_impl.InternalError: Graph execution error:\n./train_logs/model.ckpt-293_temp/part-00001-of-00002.index.tempstate13; Software caused connection abort\nExecuting non-communication op <save/SaveV2_1> originally returned UnavailableError, and was replaced by InternalError", true, ""},
		{"python's own", "ConnectionResetError: [Errno 104] Connection reset by peer", true, ""},
		{"go", "gotrainer: Pull of parameter server ps-1:20001: rpc error: code = Unavailable desc = connection error", true, ""},
		{"torch", "torch.distributed.DistBackendError: NCCL error in: x.cpp:1\nncclRemoteError: remote process exited or there was a network error", true, ""},
		{"two ranks of NCCL on one GPU", "torch.distributed.DistBackendError: NCCL error in: x.cpp:93, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.28.9\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 0 and rank 1 both on CUDA device 60", false, "LOCAL_RANK"},
		{"torch's store, whose port is taken", "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 20000, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use", false, "{port}"},
		{"torch's store, which nobody serves", "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (worker-0, 20000).", true, ""},
		{"torchrun, whose store went with the first task", "Traceback (most recent call last):\n  File \"c10d_rendezvous_backend.py\", line 113, in _call_store\nRuntimeError: Broken pipe\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"/opt/venv/bin/torchrun\", line 8, in <module>\ntorch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.", true, ""},
		{"torchrun, whose peers did not come", "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", true, ""},
		{"a process of torchrun that lost a peer",
			"Traceback (most recent call last):\nRuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:21000\nERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 7)\nTraceback (most recent call last):\n  File \"/usr/bin/torchrun\", line 33, in <module>\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED", true, ""},
		{"a process of torchrun --tee that failed",
			"[default0]:Traceback (most recent call last):\n[default0]:MemoryError\nTraceback (most recent call last):\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED", false, "memory"},
		{"a rank of PyTorch 2 that lost a peer",
			"[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 3\n[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:21000", true, ""},
		{"a rank of PyTorch 2 that failed after a complaint",
			"recvmsg:Connection reset by peer\n[rank0]: Traceback (most recent call last):\n[rank0]: KeyError: 'x'", false, ""},
		{"gloo", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:21000", true, ""},
		{"a runtime error of one's own", "RuntimeError: mat1 and mat2 shapes cannot be multiplied", false, ""},
		{"jax", "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats)", true, ""},
		{"a rank of JAX with gloo, on its way to SIGABRT", "Traceback (most recent call last):\n  File \"train.py\", line 9\nValueError: UNKNOWN: Gloo AllGather failed: [external/gloo/gloo/transport/tcp/pair.cc:538] Read error [127.0.0.1]:54456: Connection reset by peer\n*** Check failure stack trace: ***\n    @     0x7f7126c40634  absl::lts_20260107::log_internal::LogMessage::SendToLog()", true, ""},
		{"a barrier of JAX to which a peer did not come", "jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: k645::0. This usually happens because a task triggered the barrier too early or too slowly.", true, ""},
		{"the first rank of PyTorch 1.13 or 2.0, which is not there", "TimeoutError: The client socket has timed out after 1800s while trying to connect to (worker-0, 20000).", true, ""},
		{"the others, for which it waits", "RuntimeError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined.", true, ""},
		{"a coordinator of JAX whose port is taken, before its SIGSEGV", "E1126 10:40:20.984016   20913 add_port.cc:83] Failed to add port to server: No address added out of total 1 resolved for '[::]:20105'", false, "{port}"},
		{"a process that ends while Gloo's threads are at work", "step 30\nterminate called without an active exception", false, "destroy_process_group"},
		{"cuda", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", false, "smaller batch"},
		{"old save", "NotFoundError (see above for traceback): ./train_logs/model.ckpt-0_temp_0205a1571bdb4f9db000d0caf3139d5a/part-00000-of-00002.index", false, "--checkpoint"},
		{"a full disk", "ResourceExhaustedError: ./train_logs/model.ckpt-5_temp_0a/part-00000-of-00002.data-00000-of-00001.tempstate12; No space left on device", false, "make room"},
		{"old restore", "InvalidArgumentError (see above for traceback): Unsuccessful TensorSliceReader constructor: Failed to get matching files on /dump/model.ckpt-24: Not found: /dump", false, "--checkpoint"},
		{"eager", "RuntimeError: tf.placeholder() is not compatible with eager execution.", false, "--tf1"},
		{"contrib", "ModuleNotFoundError: No module named 'tensorflow.contrib'", false, "tf.contrib"},
		{"an attribute of one's own", "AttributeError: module 'mymodel' has no attribute 'Session'", false, ""},
		{"disk", "OSError: [Errno 28] No space left on device", false, "room"},
		// What a program wrote before its exception is not what ended it.
		{"a peer that is lost where no GPU is", noDriver + "\nTraceback (most recent call last):\n  File \"x.py\", line 1\nRuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:21000", true, ""},
		{"an own fault where no GPU is", noDriver + "\nTraceback (most recent call last):\n  File \"x.py\", line 1\nValueError: bad batch", false, ""},
		{"an own fault where TensorFlow finds no GPU", noDevice + "\nTraceback (most recent call last):\n  File \"x.py\", line 1\nValueError: bad batch", false, ""},
		{"an own fault after a port that was taken", "Traceback (most recent call last):\n  File \"x.py\", line 1\nOSError: [Errno 98] Address already in use\nlistening on the next port\nTraceback (most recent call last):\n  File \"x.py\", line 9\nValueError: bad batch", false, ""},
		{"a missing GPU that an exception tells", "Traceback (most recent call last):\n  File \"x.py\", line 1\nRuntimeError: Found no NVIDIA driver on your system.", false, "--worker-gpus"},
		{"a port that is taken, as the cause of the exception", "Traceback (most recent call last):\n  File \"x.py\", line 1\nOSError: [Errno 98] Address already in use\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"x.py\", line 9\nmy.Failure: no server", false, "{port}"},
		{"a peer that is lost where no GPU is, told by no exception", noDevice + "\ngotrainer: rpc error: code = Unavailable desc = connection error", true, ""},
		{"a port that is taken after a peer was not there yet, told by no exception", "gotrainer: dial: connection refused\ngotrainer: listen: address already in use", false, "{port}"},
		{"a peer that is lost, and threads that are at work when the program ends by that", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:21000\nterminate called without an active exception", true, ""},
		{"a full disk, and connections that end with the program", "OSError: [Errno 28] No space left on device\nrecvmsg:Connection reset by peer", false, "room"},
		// Whatever the name of an exception, the last one counts.
		{"an own fault of any name after a lost peer that was handled", "Traceback (most recent call last):\n  File \"x.py\", line 1\nConnectionResetError: [Errno 104] Connection reset by peer\nconnected again\nTraceback (most recent call last):\n  File \"x.py\", line 9\nmy.Failure: x", false, ""},
		{"while a lost peer was handled", "Traceback (most recent call last):\n  File \"x.py\", line 1\nConnectionResetError: [Errno 104] Connection reset by peer\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"x.py\", line 9\nqueue.Empty", false, ""},
		{"what Python ignored at its end", "Traceback (most recent call last):\n  File \"x.py\", line 8, in <module>\nValueError: own\nException ignored in atexit callback: <function g at 0x7efce44d9bc0>\nTraceback (most recent call last):\n  File \"x.py\", line 3, in g\nConnectionResetError: gone\nException ignored in: <_io.TextIOWrapper name='<stdout>'>\nBrokenPipeError: [Errno 32] Broken pipe", false, ""},
		{"script", "/usr/bin/python3: can't open file '/x/train.py': [Errno 2] No such file or directory", false, "--files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := runtime.Explain(strings.Split(c.tail, "\n"))
			if v.PeerLost != c.lost || (c.advice == "") != (v.Advice == "") || !strings.Contains(v.Advice, c.advice) {
				t.Errorf("%+v, want lost %v and advice about %q", v, c.lost, c.advice)
			}
		})
	}
}

func FuzzExplain(f *testing.F) {
	f.Add("tensorflow.python.framework.errors_impl.UnavailableError: Socket closed")
	f.Add("Traceback (most recent call last):\nA.B.CError\n")
	f.Fuzz(func(t *testing.T, s string) {
		defer bound.Memory(t, len(s), 1000)()
		v := runtime.Explain(strings.Split(s, "\n"))
		if v.PeerLost && v.Advice != "" {
			t.Errorf("%+v: a lost peer is nobody's mistake", v)
		}
	})
}

// TestQuotes: what is told to people of what a task wrote.
func TestQuotes(t *testing.T) {
	const (
		raised  = "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    f()\n"
		because = "\n\nThe above exception was the direct cause of the following exception:\n\n"
	)
	for tail, want := range map[string]string{
		"Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: no \x1b[31mgood\x1b[0m\x07 batch": "ValueError: no good batch",
		"KeyError: 'a'\nTraceback (most recent call last):\nValueError: two\nlines":                                 "ValueError: two",
		"torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15":                   "",
		"step 12": "",

		// Whatever its name, an exception ends a traceback.
		raised + "struct.error: unpack requires a buffer of 4 bytes":     "struct.error: unpack requires a buffer of 4 bytes",
		raised + "socket.gaierror: [Errno -2] Name or service not known": "socket.gaierror: [Errno -2] Name or service not known",
		raised + "StopIteration": "StopIteration",
		raised + "queue.Empty":   "queue.Empty",
		raised + "subprocess.TimeoutExpired: Command 'sleep' timed out after 1 seconds":             "subprocess.TimeoutExpired: Command 'sleep' timed out after 1 seconds",
		raised + "pyarrow.lib.ArrowInvalid: Could not open Parquet input source":                    "pyarrow.lib.ArrowInvalid: Could not open Parquet input source",
		raised + "boto3.exceptions.S3UploadFailedError: Failed to upload x":                         "boto3.exceptions.S3UploadFailedError: Failed to upload x",
		raised + "f.<locals>.Inner: z":                                                              "f.<locals>.Inner: z",
		raised + "my.Failure:\nof two lines":                                                        "my.Failure:",
		raised + "my.Failure: x\na note: of PEP 678\nbye":                                           "my.Failure: x",
		raised + "KeyError: 'a'" + because + raised + "my.Failure: x":                               "my.Failure: x",
		raised + "  [Previous line repeated 9 more times]\nmy.Failure: x":                           "my.Failure: x",
		"\x1b[1;35mTraceback (most recent call last):\x1b[0m\n  File\n\x1b[35mmy.Failure\x1b[0m: x": "my.Failure: x",
		" 50%|#####     | 5/10 [00:01<00:01,  5.0it/s]" + raised + "my.Failure: x":                  "my.Failure: x",
		"S3UploadFailedError: of which the traceback is not there":                                  "S3UploadFailedError: of which the traceback is not there",
		"    return f()\nclean: up\ndone":                                                           "",

		// Whatever stands before its lines, or between them.
		"[rank0]: Traceback (most recent call last):\n[rank0]:   File \"x.py\", line 1, in <module>\n[rank0]:     f()\n[rank0]: my.Failure: x":         "my.Failure: x",
		"[default0]:Traceback (most recent call last):\n[default0]:  File \"x.py\", line 1, in <module>\n[default0]:    f()\n[default0]:my.Failure: x": "my.Failure: x",
		raised + "W0000 00:00:1795263465.307831   14655 local_rendezvous.cc:412] aborting\nmy.Failure: x":                                              "my.Failure: x",
		raised + "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\nmy.Failure: x":                               "my.Failure: x",
		raised + "loss: 0.3\n  File \"x.py\", line 2, in f\n    g()\nmy.Failure: x":                                                                    "my.Failure: x",
		raised + "INFO:root:step 5\n2026-01-01 step 6\nstep 7\nstep 8\nstep 9\nloss: 0.3":                                                              "",

		// What a library's worker raised ends the program by an exception around it.
		raised + "my.Failure: Caught Failure in DataLoader worker process 0.\nOriginal " + raised + "my.Failure: x":                  "my.Failure: x",
		raised + "ray.exceptions.RayTaskError(Failure): ray::f() (pid=7, ip=10.0.0.3)\n  File \"x.py\", line 3, in f\nmy.Failure: x": "my.Failure: x",

		"  + Exception Group " + "Traceback (most recent call last):\n  |   File \"x.py\", line 8, in <module>\n  | ExceptionGroup: eg (2 sub-exceptions)\n  | a note\n" +
			"  +-+---------------- 1 ----------------\n    | ValueError: a\nb\n    +---------------- 2 ----------------\n" +
			"    | Traceback (most recent call last):\n    |   File \"x.py\", line 6, in f\n    | my.Failure: x\n    +------------------------------------": "my.Failure: x",
		"  + Exception Group " + "Traceback (most recent call last):\n  |   File \"x.py\", line 8, in <module>\n  | ExceptionGroup: eg (1 sub-exception)\n" +
			"  +-+---------------- 1 ----------------\n    | f.<locals>.Inner: z\n    +------------------------------------": "f.<locals>.Inner: z",
	} {
		if v := runtime.Explain(strings.Split(tail, "\n")); v.Error != want {
			t.Errorf("%q is quoted as %q, want %q", tail, v.Error, want)
		}
	}
}
