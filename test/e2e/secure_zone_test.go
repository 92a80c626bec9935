package e2e

import (
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// TestLongEncryptionZone trains in an encryption zone of a cluster with Kerberos.
// Containers have no tickets: they get the keys of their files by a token, which the
// ResourceManager renews.
func TestLongEncryptionZone(t *testing.T) {
	guarded.enter(t)
	c := secure(t, testcluster.Security{RPC: "integrity"}, testcluster.Options{KMS: &testcluster.KMS{Keys: []string{"key1"}}})
	must(t, c.MakeZone(t.Context(), "/zone", "key1", kdc.Alice))
	w := where{c}
	t.Run("training", func(t *testing.T) {
		j := w.train(t, c.HDFS()+"/zone/logs", 60)
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		if step := j.newestComplete(); step != 60 {
			t.Errorf("the newest checkpoint is of step %d", step)
		}
		if log := c.Daemon("rm").Log(); !strings.Contains(log, "Kind: kms-dt") {
			t.Error("the ResourceManager was given no token for the key servers to renew")
		}
	})
	write := func(t *testing.T, store, file string) *job {
		return w.start(t, "", "--worker", "1", "--worker-memory", "256m", "--checkpoint", "./logs="+store, "--",
			"sh", "-c", "(echo here > "+file+") 2>&1; ls logs")
	}
	t.Run("a zone below", func(t *testing.T) {
		store := c.HDFS() + "/user/alice/outer"
		write(t, store, "logs/file").end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		must(t, c.MakeZone(t.Context(), "/user/alice/outer/inner", "key1", kdc.Alice))
		j := write(t, store, "logs/inner/file")
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		if text := j.logs("worker-0"); !strings.Contains(text, "Invalid cross-device link") {
			t.Errorf("a file that cannot be moved into its zone is written:\n%s", text)
		}
	})
	t.Run("no key servers", func(t *testing.T) {
		must(t, c.Daemon("kms0").Kill())
		_, stderr, code := w.call(t.Context(), "", "run", "--worker", "1", "--checkpoint", "./logs="+c.HDFS()+"/zone/more", "--", "true")
		for _, want := range []string{"/zone", "key1", c.KeyProvider(), "see that the KMS runs"} {
			if code == 0 || !strings.Contains(stderr, want) {
				t.Errorf("run ended with %d and does not tell %q:\n%s", code, want, stderr)
			}
		}
	})
}
