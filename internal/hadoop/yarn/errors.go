package yarn

import (
	"strings"

	"holdfast/internal/hadoop/rpc"
)

const exceptions = "org.apache.hadoop.yarn.exceptions."

// IsInvalidRequest reports whether the scheduler refused an ask: larger than its
// maximum, or of a resource type or node label that it does not have.
func IsInvalidRequest(err error) bool {
	return isA(err, "InvalidResourceRequestException") || isA(err, "InvalidLabelResourceRequestException") ||
		isA(err, "ResourceNotFoundException") || isA(err, "SchedulerInvalidResoureRequestException")
}

// IsNotRegistered reports whether the RM does not know the AM as registered: it
// was restarted, and the AM must register again.
func IsNotRegistered(err error) bool { return isA(err, "ApplicationMasterNotRegisteredException") }

// IsAttemptGone reports whether the RM has given up this attempt of the AM.
func IsAttemptGone(err error) bool { return isA(err, "ApplicationAttemptNotFoundException") }

// IsAlreadyRegistered reports whether the AM has been registered before.
func IsAlreadyRegistered(err error) bool {
	return isA(err, "InvalidApplicationMasterRequestException") && strings.Contains(err.Error(), "already registered")
}

// IsUnknownApplication reports whether the RM does not know the application (any more).
func IsUnknownApplication(err error) bool { return isA(err, "ApplicationNotFoundException") }

// IsUnknownQueue reports whether a queue does not exist.
func IsUnknownQueue(err error) bool {
	if err == nil {
		return false
	}
	if _, ok := err.(*unknownQueue); ok {
		return true
	}
	text := strings.ToLower(err.Error())
	return rpc.RemoteClass(err) != "" && (strings.Contains(text, "unknown queue") || strings.Contains(text, "non-existent queue"))
}

// IsNotAllowed reports whether the application's or the queue's ACLs forbid this user
// what was asked for. The RM wraps the exception that says so
// (ClientRMService.forceKillApplication, RPCUtil.getRemoteException).
func IsNotAllowed(err error) bool {
	return isA(err, "YarnException") && strings.Contains(err.Error(), "AccessControlException: ")
}

func isA(err error, class string) bool { return rpc.IsRemote(err, exceptions+class) }
