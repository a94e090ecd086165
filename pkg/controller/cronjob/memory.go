// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// memory holds what the controller knows of CronJobs and the API does not: when their schedules
// changed, and what has been told already. All of it may be lost at a restart.
type memory struct {
	// mu guards the following fields.
	mu   sync.Mutex
	jobs map[cache.ObjectName]*remembered
}

type remembered struct {
	uid     types.UID
	changed time.Time         // of the schedule
	told    map[string]string // once-texts by topic
}

func newMemory() *memory { return &memory{jobs: map[cache.ObjectName]*remembered{}} }

func (m *memory) ofLocked(key cache.ObjectName, uid types.UID) *remembered {
	r, ok := m.jobs[key]
	if !ok || r.uid != uid {
		r = &remembered{uid: uid}
		m.jobs[key] = r
	}
	return r
}

// scheduleChanged remembers when a schedule changed.
func (m *memory) scheduleChanged(key cache.ObjectName, uid types.UID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ofLocked(key, uid).changed = at
}

// changedAt returns when the schedule was last seen to change, zero if it was not.
func (m *memory) changedAt(key cache.ObjectName, uid types.UID) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.jobs[key]; ok && r.uid == uid {
		return r.changed
	}
	return time.Time{}
}

// untold returns the messages of a sync that are to be sent. It must be given all of them: a topic
// that is not there is forgotten.
func (m *memory) untold(key cache.ObjectName, uid types.UID, messages []message) []message {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.ofLocked(key, uid)
	var news []message
	told := map[string]string{}
	for _, message := range messages {
		before, known := r.told[message.topic]
		if message.topic == "" || !known || before != message.once {
			news = append(news, message)
		}
		if message.topic != "" {
			told[message.topic] = message.once
		}
	}
	r.told = told
	if len(told) == 0 && r.changed.IsZero() {
		delete(m.jobs, key)
	}
	return news
}

func (m *memory) forget(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, key)
}
