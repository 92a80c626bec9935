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
	for tail, want := range map[string]string{
		"Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: no \x1b[31mgood\x1b[0m\x07 batch": "ValueError: no good batch",
		"KeyError: 'a'\nTraceback (most recent call last):\nValueError: two\nlines":                                 "ValueError: two",
		"torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15":                   "",
		"step 12": "",
	} {
		if v := runtime.Explain(strings.Split(tail, "\n")); v.Error != want {
			t.Errorf("%q is quoted as %q, want %q", tail, v.Error, want)
		}
	}
}
