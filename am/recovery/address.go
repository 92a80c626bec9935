package recovery

import (
	"context"
	"fmt"
	"os"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// Announce writes the address file of a master attempt, by which clients and agents find
// it. address is host:port of its gRPC service. A predecessor may still be alive: once
// Announce has returned, it sends nothing that FindPredecessor does not know of.
func Announce(ctx context.Context, dir store.Store, attempt int, address string) error {
	return writeAddress(ctx, dir, proto.Address{Attempt: attempt, Address: address})
}

// AnnounceEnd tells agents that cannot be reached, by the address file, that the job has
// ended.
func AnnounceEnd(ctx context.Context, dir store.Store, attempt int, address string) error {
	return writeAddress(ctx, dir, proto.Address{Attempt: attempt, Address: address, Ended: true})
}

func writeAddress(ctx context.Context, dir store.Store, a proto.Address) error {
	a.PID = os.Getpid()
	text, err := a.Marshal()
	if err != nil {
		return err
	}
	if err := store.WriteFile(ctx, dir, proto.AddressFile, text, 0o600); err != nil {
		return fmt.Errorf("writing the address of the application master: %w", err)
	}
	return nil
}

// AddressReader reads a job's address file again and again, at little cost while it does
// not change. It must not be used concurrently.
type AddressReader struct {
	dir  store.Store
	file store.Latest
}

// NewAddressReader returns a reader of the address file in a job's directory.
func NewAddressReader(dir store.Store) *AddressReader { return &AddressReader{dir: dir} }

// LatestAttempt returns the master attempt that announced itself last.
func (r *AddressReader) LatestAttempt(ctx context.Context) (int, error) {
	if err := r.file.Read(ctx, r.dir, proto.AddressFile); err != nil {
		return 0, fmt.Errorf("looking for another application master: %w", err)
	}
	a, err := proto.UnmarshalAddress(r.file.Text)
	return a.Attempt, err
}
