package proto

import "time"

// While an agent hears nothing of its AM, it looks at AddressFile, which the AM
// touches as long as it lives. These times are parts of the lease of the job's
// agents.
//
// An AM gives a task to another container only when it has touched the file
// without a break for longer than the lease of a lost agent; a break is more than
// TouchLimit from the beginning of a touch to the end of the next. An agent that
// has seen the file untouched for Untouched knows that no AM has done so until
// then, and lets its lease begin anew. An AM that comes after puts a file of its
// own in that place before it begins to wait.

// TouchEvery is the time between two touches.
func TouchEvery(lease time.Duration) time.Duration { return lease / 5 }

// TouchLimit is what an AM's touches may be apart.
func TouchLimit(lease time.Duration) time.Duration { return lease * 2 / 5 }

// Untouched is what an agent waits for; it is longer than TouchLimit by more than
// clocks can drift apart in that time.
func Untouched(lease time.Duration) time.Duration { return lease * 9 / 20 }
