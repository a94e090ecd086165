// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaos plays scenarios of test/scenarios, those with chaos: true, with our manager and a fault, and compares
// what is left at each checkpoint with what an undisturbed run leaves.
//
//	TestKill          the manager is killed at each write in turn: before the API server gets it, and after
//	TestTimeTravel    the restarted manager sees an older state first, then the present
//	TestMissedEvents  watches are cut and have to list anew all the time; events come late
//	TestPartition     the leader loses the API server until the lease passes on, and finds it again
//	TestRequestFaults each request in turn is answered with a conflict, an overload, an error, or not at all
//
// After each: the same objects; not one pod more created, nor deleted, than undisturbed (but for requests whose answers
// are lost: nobody can know whether they were carried out); no object written by a manager that has lost the lease.
//
// hack/chaos.sh plays all such scenarios; as part of all tests a few are played (see quick).
package chaos
