package sandbox

import (
	"context"
	"fmt"

	"holdfast/internal/proc"
)

// Probe says what is allowed on this machine, for this user.
func Probe(ctx context.Context, o Options) (Restrictions, error) {
	b, err := Start(ctx, o)
	if err != nil {
		return Restrictions{}, err
	}
	defer b.Close()
	if b.listener != nil {
		b.listener.Close()
	}
	return b.restrictions, nil
}

// adviseNamespace says what to do where no namespace could be had.
func adviseNamespace(err error) error {
	remedy := "let this user have user namespaces: sysctl user.max_user_namespaces=10000"
	if proc.Sysctl("kernel/unprivileged_userns_clone") == "0" {
		remedy = "let this user have user namespaces: sysctl kernel.unprivileged_userns_clone=1"
	}
	if proc.Sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" {
		remedy = "let this user have user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	}
	return fmt.Errorf("a private mount namespace is not allowed here: %w; %s (in a Docker container: run it with --security-opt seccomp=unconfined or --cap-add SYS_ADMIN)", err, remedy)
}

func adviseFuse(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("FUSE is not allowed here: %w; load the module (modprobe fuse) and let users open it: chmod 0666 /dev/fuse (in a Docker container: --device /dev/fuse)", err)
}
