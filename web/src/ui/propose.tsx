// A change of one thing (a member, a going back): plans it, shows what will happen, asks, and starts it.
import { useEffect, useState } from 'preact/hooks';
import type { Change, Plan } from '../api/types';
import { useWords, wordsOf } from '../i18n';
import { language } from '../lib/settings';
import { hrefOf } from '../lib/router';
import { perform } from './actions';
import { showDialog } from './dialog';
import { Fault, Loading } from './parts';
import { planOf, PlanSummary } from './plan';

export interface Proposal {
  title: string;
  intro: string; // What is about to be done, in a sentence.
  change: Change;
  path: string; // Of the action.
  body: Record<string, unknown>;
  confirm: string;
  danger?: boolean;
}

function ProposalBody({ proposal, close }: { proposal: Proposal; close: (answer: Plan | null) => void }) {
  const { t } = useWords();
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<unknown>(null);
  const look = (): void => {
    setError(null);
    planOf(proposal.change).then(setPlan, setError);
  };
  useEffect(look, []);
  return (
    <>
      <p>{proposal.intro}</p>
      {error !== null ? <Fault error={error} again={look} /> : plan ? <div class="what"><PlanSummary plan={plan} /></div> : <Loading />}
      <div class="buttons">
        <button type="button" autofocus onClick={() => close(null)}>{t('dialog.cancel')}</button>
        <button type="button" class={proposal.danger ? 'danger' : 'primary'} disabled={!plan} onClick={() => close(plan)}>{proposal.confirm}</button>
      </div>
    </>
  );
}

// True when it was started; then the page is the one on which it can be watched.
export async function propose(proposal: Proposal): Promise<boolean> {
  let agreed: Plan | null = null;
  await showDialog(proposal.title, (close) => (
    <ProposalBody proposal={proposal} close={(plan) => {
      agreed = plan;
      close(plan !== null);
    }} />
  ), true);
  if (agreed === null) return false;
  const { t } = wordsOf(language.get());
  const started = await perform(proposal.path, { ...proposal.body, if_version: (agreed as Plan).version }, t('done.started'));
  if (started) location.hash = hrefOf('resize');
  return started;
}
