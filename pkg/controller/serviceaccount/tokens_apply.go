// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	apiserverserviceaccount "k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/serviceaccount"
)

// syncAccount deletes the tokens of a service account that is gone.
func (e *TokensController) syncAccount(ctx context.Context, key accountKey) error {
	current, err := e.accounts.ServiceAccounts(key.namespace).Get(key.name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking up service account %s/%s: %w", key.namespace, key.name, err)
	}
	if err == nil && current.UID == key.uid {
		return nil
	}
	secrets, err := e.secrets.Secrets(key.namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing the secrets of namespace %s: %w", key.namespace, err)
	}
	gone := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.namespace, Name: key.name, UID: key.uid}}
	var errs []error
	for _, secret := range secrets {
		if !apiserverserviceaccount.IsServiceAccountToken(secret, gone) {
			continue
		}
		klog.FromContext(ctx).V(4).Info("Deleting a token secret, its service account is gone", "secret", klog.KObj(secret))
		if err := e.deleteSecret(ctx, secret.Namespace, secret.Name, secret.UID); err != nil {
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// syncSecret fills, deletes or, when it is gone, forgets one token secret.
func (e *TokensController) syncSecret(ctx context.Context, key secretKey) error {
	secret, err := e.secrets.Secrets(key.namespace).Get(key.name)
	if apierrors.IsNotFound(err) {
		return e.forgetSecret(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("looking up secret %s/%s: %w", key.namespace, key.name, err)
	}
	if secret.UID != key.uid {
		return nil // another secret of that name, with events of its own; a reference by name is good
	}
	sa, err := e.accountOf(ctx, key)
	if err != nil {
		return err
	}
	if sa == nil {
		klog.FromContext(ctx).V(4).Info("Deleting a token secret, its service account is gone", "secret", klog.KObj(secret))
		return e.deleteSecret(ctx, key.namespace, key.name, key.uid)
	}
	return e.fillSecret(ctx, secret, sa)
}

// accountOf returns the service account that a secret belongs to, or nil when the API server
// confirms that there is none.
func (e *TokensController) accountOf(ctx context.Context, key secretKey) (*v1.ServiceAccount, error) {
	sa, err := e.accounts.ServiceAccounts(key.namespace).Get(key.accountName)
	if err == nil && key.belongs(sa) {
		return sa, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("looking up service account %s/%s: %w", key.namespace, key.accountName, err)
	}
	// The two caches need not be equally new: a secret may be seen before its account.
	sa, err = e.client.CoreV1().ServiceAccounts(key.namespace).Get(ctx, key.accountName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting service account %s/%s: %w", key.namespace, key.accountName, err)
	}
	if !key.belongs(sa) {
		return nil, nil
	}
	return sa, nil
}

// deleteSecret deletes that very secret. One that is gone or was replaced is not an error.
func (e *TokensController) deleteSecret(ctx context.Context, namespace, name string, uid types.UID) error {
	err := e.client.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(uid)),
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting secret %s/%s: %w", namespace, name, err)
}

// fillSecret adds what a token secret lacks.
func (e *TokensController) fillSecret(ctx context.Context, cached *v1.Secret, sa *v1.ServiceAccount) error {
	if !findGaps(cached, e.rootCA).any() {
		return nil
	}
	secrets := e.client.CoreV1().Secrets(cached.Namespace)
	live, err := secrets.Get(ctx, cached.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting secret %s/%s: %w", cached.Namespace, cached.Name, err)
	}
	if live.ResourceVersion != cached.ResourceVersion {
		return nil // the cache is behind: the change's own event brings the key back
	}

	missing := findGaps(live, e.rootCA)
	token := ""
	if missing.token {
		claims, private := serviceaccount.LegacyClaims(*sa, *live)
		if token, err = e.generator.GenerateToken(ctx, claims, private); err != nil {
			return fmt.Errorf("making a token for secret %s/%s: %w", live.Namespace, live.Name, err)
		}
	}
	_, err = secrets.Update(ctx, fill(live, sa, missing, e.rootCA, token), metav1.UpdateOptions{})
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // somebody else changed or deleted it: that has an event, too
	}
	return fmt.Errorf("updating secret %s/%s: %w", live.Namespace, live.Name, err)
}

// forgetSecret takes a secret that is gone out of its service account's list.
func (e *TokensController) forgetSecret(ctx context.Context, key secretKey) error {
	sa, err := e.accounts.ServiceAccounts(key.namespace).Get(key.accountName)
	if apierrors.IsNotFound(err) || (err == nil && !key.belongs(sa)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking up service account %s/%s: %w", key.namespace, key.accountName, err)
	}
	backoff := wait.Backoff{Steps: 10, Duration: 100 * time.Millisecond, Jitter: 1.0}
	err = retry.RetryOnConflict(backoff, func() error { return e.removeReference(ctx, key) })
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("removing secret %s from service account %s/%s: %w", key.name, key.namespace, key.accountName, err)
}

// removeReference works on the live service account: the cache may not show a reference that was
// added just before the secret was deleted.
func (e *TokensController) removeReference(ctx context.Context, key secretKey) error {
	accounts := e.client.CoreV1().ServiceAccounts(key.namespace)
	live, err := accounts.Get(ctx, key.accountName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !key.belongs(live) {
		return nil
	}
	updated, changed := withoutReference(live, key.name)
	if !changed {
		return nil
	}
	_, err = accounts.Update(ctx, updated, metav1.UpdateOptions{})
	return err
}
