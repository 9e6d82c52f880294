"""Tasks that send the outbox."""

from __future__ import annotations

from celery import shared_task

from portal.core.sweeps import looks
from portal.notifications import account_holders, account_mail, sending
from portal.notifications.models import Delivery


@shared_task(name="notifications.sweep", time_limit=120)
def sweep() -> None:
    sending.sweep()


@shared_task(name="notifications.send", time_limit=60)
def send(delivery_id: int) -> None:
    sending.send(delivery_id=delivery_id)


@shared_task(name="notifications.mail_links", time_limit=300)
def mail_links() -> None:
    account_mail.sweep()
    account_holders.sweep()
    account_holders.announce_scim_tokens()


looks.register_rows("notifications.sweep", Delivery)
