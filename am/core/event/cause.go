package event

// Cause is why a container or an attempt was lost.
type Cause int

// The causes. Their text is what a user reads.
const (
	CauseUnknown            Cause = iota
	CauseOwnFault                 // its process failed
	CausePeerLost                 // its process ended because a peer had gone
	CauseOutOfMemory              // it needed more memory than it asked for
	CausePreempted                // the scheduler wanted its container back
	CauseNodeLost                 // its node is gone
	CauseDisksFailed              // its node's disks are bad
	CauseKilled                   // the RM or a person killed its container
	CauseAgentLost                // its agent ended or fell silent
	CauseLaunch                   // its agent did not come up
	CauseReleased                 // we gave its container back
	CauseRestartedAll             // another task was lost, and all start together
	CauseNodeDecommissioned       // its node is taken out of service
	CauseStalled                  // it made no step any longer
	CauseRequested                // a person asked for its restart
	CauseScaledDown               // a person wants fewer tasks
	CauseVirtualLimit             // it reserved more virtual memory than its node allows
	CauseStraggler                // it was slower than the others of its role
	CauseServiceEnded             // its process ended with exit code 0, but the others need it
)

var causeText = [...]string{
	CauseUnknown:            "unknown cause",
	CauseOwnFault:           "its process failed",
	CausePeerLost:           "a peer was lost",
	CauseOutOfMemory:        "out of memory",
	CausePreempted:          "container preempted",
	CauseNodeLost:           "node lost",
	CauseDisksFailed:        "disks of the node failed",
	CauseKilled:             "container killed",
	CauseAgentLost:          "container lost",
	CauseLaunch:             "agent did not come up",
	CauseReleased:           "container released",
	CauseRestartedAll:       "restarted together with a lost task",
	CauseNodeDecommissioned: "node taken out of service",
	CauseStalled:            "no steps any longer",
	CauseRequested:          "restart requested",
	CauseScaledDown:         "scaled down",
	CauseVirtualLimit:       "over the node's limit of virtual memory",
	CauseStraggler:          "slower than the others",
	CauseServiceEnded:       "its process ended",
}

// CauseTexts returns the texts of all causes.
func CauseTexts() []string { return causeText[:] }

// OfProgram reports whether a task's program brought its loss about.
func (c Cause) OfProgram() bool { return c == CauseOwnFault || c == CauseServiceEnded }

func (c Cause) String() string {
	if c < 0 || int(c) >= len(causeText) {
		return "cause out of range"
	}
	return causeText[c]
}

// OfMemory reports whether a larger container would have done. NodeManagers limit virtual
// memory in proportion to a container's size.
func (c Cause) OfMemory() bool { return c == CauseOutOfMemory || c == CauseVirtualLimit }

// StopReason is why an attempt was told to end.
type StopReason string

// The reasons, with what follows once the attempt has ended.
const (
	StopTogether  StopReason = "together"  // it starts again with the others
	StopToLeave   StopReason = "leave"     // its task leaves the container
	StopStalled   StopReason = "stalled"   // it starts again, and the failure is charged
	StopRequested StopReason = "requested" // it starts again, and nothing is charged
	StopJobEnds   StopReason = "ends"      // the job ends
)

// ShowsStack reports whether an attempt that is ended shows first where it stands.
func (r StopReason) ShowsStack() bool { return r == StopStalled || r == StopRequested }
