// How far a resize has come: a bar and one sentence.
import type { ResizeStatus } from '../api/types';
import { useWords } from '../i18n';
import { Chip, type Tone } from './parts';

export const STATE_TONES: Record<ResizeStatus['state'], Tone> = {
  idle: 'quiet', preparing: 'info', running: 'info', paused: 'warning', rolling_back: 'warning', finished: 'good', failed: 'critical',
};

export const underWay = (status: ResizeStatus | null): boolean =>
  status !== null && ['preparing', 'running', 'paused', 'rolling_back'].includes(status.state);

// Of the keys to move, as far as known. The estimate may be low: 99 % until it has ended.
export function shareDone(status: ResizeStatus): number {
  if (status.state === 'finished') return 1;
  if (status.keys_to_move <= 0) return 0;
  return Math.min(0.99, status.keys_moved / status.keys_to_move);
}

export function Progress({ status }: { status: ResizeStatus }) {
  const { t, format } = useWords();
  const share = shareDone(status);
  const label = status.state === 'finished' && status.rolled_back ? t('state.rolledBack') : t(`state.${status.state}`);
  const where = status.steps > 0 && underWay(status)
    ? `${t('progress.step', { step: status.step, steps: status.steps })}${status.phase && ` · ${t(`phase.${status.phase}`)}`}` : '';
  return (
    <div class="progress">
      <p class="unseen" role="status">{`${label}. ${where}`}</p>
      <div class="progress-head">
        <Chip tone={STATE_TONES[status.state]}>{label}</Chip>
        {where && <span>{where}</span>}
        <span class="progress-share">{format.percent(share, 0)}</span>
      </div>
      <div class="progress-bar" role="progressbar" aria-label={t('progress.label')} aria-valuemin={0} aria-valuemax={100}
           aria-valuenow={Math.round(share * 100)}>
        <span class={STATE_TONES[status.state]} style={{ width: `${share * 100}%` }} />
      </div>
      <p class="note">
        {t('progress.keys', { moved: format.count(status.keys_moved), total: format.count(status.keys_to_move), bytes: format.bytes(status.bytes_moved) })}
        {status.state === 'running' && status.eta_seconds > 0 && ` · ${t('progress.eta', { time: format.duration(status.eta_seconds) })}`}
      </p>
    </div>
  );
}
