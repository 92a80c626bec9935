package proto

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Names that several packages use: of files in a job's directory, of environment variables and
// of secrets in a container's credentials.
const (
	// SpecFile and StatusFile are files in the job's directory, in protobuf JSON.
	SpecFile = "spec.json"
	// DraftFile is the job as its user described it, in YAML, to be run again.
	DraftFile  = "job.yaml"
	StatusFile = "status.json"
	// SamplesFile is the job's JobSamples, in protobuf's binary form.
	SamplesFile = "samples.pb"
	// AddressFile says where the AM is: an Address as JSON.
	AddressFile = "am.json"
	// JournalDir holds ATTEMPT.json, the journal of an AM attempt for its successor.
	JournalDir = "journal"
	// LogsDir holds TASK/ATTEMPT.log, and TASK/ATTEMPT.PROCESS.log for processes after the
	// first.
	LogsDir = "logs"
	// MasterLogsDir is the directory of MasterLogName.
	MasterLogsDir = "master"
	// KeysFile holds the client's certificate and key (JSON of jobtls.Keys), mode 0600.
	KeysFile = "keys.json"
	// KeytabFile is the user's keytab in the AM's container, and nowhere else on the
	// nodes. EnvPrincipal names the principal in it, and EnvKeytab the file from which it
	// was localized: named like the job, in the directory of its YARN in KeytabsDir, below
	// HomeDir. That file exists, with mode 0600, for as long as the job may need another
	// AM.
	KeytabFile   = "keytab"
	KeytabsDir   = "keytabs"
	EnvPrincipal = "HOLDFAST_PRINCIPAL"
	EnvKeytab    = "HOLDFAST_KEYTAB"
	// HomeDir is Holdfast's directory in the user's home on the store.
	HomeDir = ".holdfast"

	// EnvJob, EnvJobDirectory, EnvMaster and EnvContainer tell AM and agents
	// who they are. EnvMaster is host:port of the AM's gRPC service.
	EnvJob          = "HOLDFAST_JOB"
	EnvJobDirectory = "HOLDFAST_JOB_DIRECTORY"
	EnvMaster       = "HOLDFAST_MASTER"
	EnvContainer    = "HOLDFAST_CONTAINER"
	// EnvHost is the address under which a container's host is reached.
	EnvHost = "HOLDFAST_HOST"
	// EnvWarm names the module that a task's warm interpreter imports; empty or
	// missing: there is none.
	EnvWarm = "HOLDFAST_WARM"
	// EnvKept is of an attempt that comes back to services that have kept what they
	// hold. The job's own environment may say 0, so that it goes back to the checkpoint.
	EnvKept = "HOLDFAST_MODEL_KEPT"
	// EnvLinger has a process stay after its work while other tasks may need it. The value
	// 1 asks for that. The agent replaces it by the absolute name of a FIFO. A process that
	// needs those of other tasks writes the line LingerPeers there. One that stays writes
	// its process ID, as a line, and ends when something is written to the FIFO that has
	// the same name with a dot and the process ID.
	EnvLinger   = "HOLDFAST_LINGER"
	LingerPeers = "peers"
	// EnvCredentials names a token file with the secrets where YARN does not
	// provide one by HADOOP_TOKEN_FILE_LOCATION (local jobs).
	EnvCredentials = "HOLDFAST_CREDENTIALS"

	// Secrets in a container's credentials: JSON of jobtls.Keys for the AM
	// itself, the agents and the client; the packed Hadoop configuration.
	SecretMaster = "holdfast.master"
	SecretAgent  = "holdfast.agent"
	SecretClient = "holdfast.client"
	SecretConf   = "holdfast.conf"
)

// Metadata of an agent's stream: the container that it speaks for, and the pass that
// shows that it may (jobtls).
const (
	HeaderContainer = "holdfast-container"
	HeaderPass      = "holdfast-pass-bin"
)

// Address is where a job's application master is.
type Address struct {
	Address string `json:"address"` // host:port of its gRPC service
	PID     int    `json:"pid"`
	Attempt int    `json:"attempt"`         // of the application, on YARN: from 1
	Ended   bool   `json:"ended,omitempty"` // so has the job
}

// StoredName returns the name, a path, under which an input of a job that is called name in the task's
// working directory is on HDFS and, of an archive, in the container's directory. Names of HDFS have no
// colon, and these stand in URIs and in the scripts of NodeManagers as they are. Different names have
// different ones.
func StoredName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("/._-", c) >= 0, c >= 0x80:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// Marshal makes the text of AddressFile.
func (a Address) Marshal() ([]byte, error) {
	text, err := json.Marshal(a)
	return append(text, '\n'), err
}

// UnmarshalAddress reads what Marshal has made.
func UnmarshalAddress(text []byte) (Address, error) {
	var a Address
	if err := json.Unmarshal(text, &a); err != nil {
		return Address{}, fmt.Errorf("%s: %w", AddressFile, err)
	}
	if a.Address == "" {
		return Address{}, errors.New(AddressFile + " gives no address")
	}
	return a, nil
}

// CheckpointURIs are where the job's checkpoints are.
func (s *JobSpec) CheckpointURIs() []string {
	var list []string
	for _, c := range s.GetCheckpoints() {
		list = append(list, c.GetUri())
	}
	return list
}

// Done reports whether the state is final.
func (s JobState) Done() bool {
	return s == JobState_JOB_STATE_SUCCEEDED || s == JobState_JOB_STATE_FAILED || s == JobState_JOB_STATE_KILLED
}

// Done reports whether a task in the state runs no more.
func (s TaskState) Done() bool {
	return s == TaskState_TASK_STATE_SUCCEEDED || s == TaskState_TASK_STATE_FAILED || s == TaskState_TASK_STATE_STOPPED
}

// WriterName is what a container's mounts are called in a checkpoint store, so
// that they can be fenced off from it.
func WriterName(job, container string) string { return job + "." + container }

// MasterContainer stands for the application master among a job's writers: it
// writes nothing but the job's heartbeat.
const MasterContainer = "am"

// SubmissionContainer stands for the submission among a job's writers, from before the job
// is YARN's until its application master writes.
const SubmissionContainer = "submission"

// WritersJob is the job of a writer.
func WritersJob(name string) string {
	job, _ := Writer(name)
	return job
}

// Writer takes apart what WriterName has made.
func Writer(name string) (job, container string) {
	job, container, _ = strings.Cut(name, ".")
	return job, container
}
