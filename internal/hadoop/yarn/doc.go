// Package yarn implements YARN's protocols: as a client to the ResourceManager, as an
// application master to its scheduler, and to NodeManagers to run containers.
//
//   - Client: ApplicationClientProtocol. Submit, report, kill, list; nodes and
//     queues. It logs in as its user, or with an RM delegation token.
//   - Master: ApplicationMasterProtocol. Register, allocate, finish. It logs in
//     with the AMRMToken of its container's credentials, also on clusters without
//     security, and adopts the new token that an allocate response has when
//     the RM rolls its keys.
//   - Nodes: ContainerManagementProtocol at any number of NodeManagers, each with
//     the NMToken that the RM sent for it with the first container there.
//
// Each of the three may be used by many goroutines, except that Master's calls
// must follow each other: the scheduler numbers them. They own no goroutines but
// those of their RPC connections, which Close ends.
//
// # Launch contexts
//
// A NodeManager turns a ContainerLaunchContext into a bash script: an
// environment variable becomes export NAME="VALUE", and before that {{X}}, <CPS>
// and <LOG_DIR> in it are replaced (ContainerLaunch.expandEnvironment). Launch
// quotes values so that they arrive as they are. The command becomes
// exec /bin/bash -c "COMMAND", with the same replacements, and is not quoted.
package yarn
